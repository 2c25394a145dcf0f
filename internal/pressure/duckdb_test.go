package pressure

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audit/archive"
	"capper/internal/capping"
)

// recount is the answer of scripts/duckdb/pressure.mjs. DuckDB writes whole numbers of 64 bits as text.
type recount struct {
	People []struct {
		By, Name       string
		Week, N, Users json.Number
	}
	AtLimits []struct {
		Segment, Name string
		Users         json.Number
	} `json:"at_limits"`
	Campaigns []struct {
		M, NS, CH             string
		Week, Sends, Released json.Number
	}
	Held []struct {
		M, NS, CH   string
		Week, Users json.Number
	}
	Taken []struct {
		M, NS, CH string
		ByM       string `json:"by_m"`
		ByNS      string `json:"by_ns"`
		ByCH      string `json:"by_ch"`
		Users     json.Number
	}
}

// TestCountsAreThoseOfDuckDB exports a history as Parquet, lets DuckDB count it by SQL, and compares every number.
func TestCountsAreThoseOfDuckDB(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.plain, w.images = true, false
	w.users = nil
	for i := range capping.UserID(1500) {
		w.users = append(w.users, i, 65_000+i, 4_000_000_000+7*i)
	}
	for i, user := range w.users {
		w.generation.segments[user] = i % 3
	}
	w.policy = exportedPolicy()
	w.policies = map[string]*capping.Policy{w.policy.Version: w.policy}
	w.run()
	dir := t.TempDir()
	channels := map[capping.Channel]string{0: "", 1: "push", 2: "email"}
	var exported bytes.Buffer
	rows, err := archive.NewWriter(archive.Parquet, &exported)
	require.NoError(t, err)
	for _, r := range w.records {
		require.NoError(t, rows.Add(r, channels[r.Channel]))
	}
	require.NoError(t, rows.Close())
	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, content, 0o600))
		return file
	}
	members, limits := []byte("u,segment\n"), []byte("segment,name,most,window_ms,channel\n")
	for _, user := range w.users {
		if segment := w.generation.segments[user]; segment > 0 {
			members = fmt.Appendf(members, "%d,%s\n", user, w.generation.names[segment-1])
		}
	}
	for _, segment := range []string{"", "new", "vip"} {
		for _, l := range w.policy.Limits(segment) {
			channel := ""
			if !l.Channels.All() {
				channel = channels[l.Channels.Channels()[0]]
			}
			limits = fmt.Appendf(limits, "%s,%s,%d,%d,%s\n", cmp.Or(segment, api.NoSegment), l.Name, l.Max,
				l.Window.Milliseconds(), channel)
		}
	}
	cfg := w.config()
	cfg.Channel, cfg.Namespace, cfg.MinTaken, cfg.Weeks = nil, nil, 1, 4
	until := cfg.Until.Time().UnixMilli()
	out, err := exec.CommandContext(t.Context(), "../../scripts/duckdb.sh", "pressure.mjs",
		write("audit.parquet", exported.Bytes()), write("members.csv", members), write("limits.csv", limits),
		strconv.FormatInt(until, 10), strconv.Itoa(cfg.Weeks)).Output()
	var failed *exec.ExitError
	if ok := errors.As(err, &failed); ok {
		t.Fatalf("%v: %s", err, failed.Stderr)
	}
	require.NoError(t, err)
	var want recount
	require.NoError(t, json.Unmarshal(out, &want))
	got, err := Run(context.Background(), w.read, cfg)
	require.NoError(t, err)
	require.NotEmpty(t, want.Taken)
	require.Equal(t, want.numbers(t), numbersOf(got.Pressure))
}

// exportedPolicy has limits that SQL judges easily.
func exportedPolicy() *capping.Policy {
	daily := capping.Limit{Name: "daily", Max: 1, Window: day}
	weekly := capping.Limit{Name: "weekly", Max: 3, Window: 7 * day}
	return &capping.Policy{Version: "exported", Channels: map[string]capping.Channel{"push": 1, "email": 2},
		Default: []capping.Limit{daily, weekly}, Segments: map[string][]capping.Limit{
			"new":    {daily, {Name: "weekly", Max: 2, Window: 6 * day}},
			"vip":    {{Name: "gap", Max: 1, Window: 2 * time.Hour, Channels: capping.ChannelSetOf(1)}, weekly},
			"nobody": {{Name: "year", Max: 1, Window: 366 * day}},
		}}
}

// numbers returns the recount as a number for each question that is not 0.
func (r *recount) numbers(t testing.TB) map[string]int64 {
	all := map[string]int64{}
	add := func(n json.Number, question ...any) {
		users, err := n.Int64()
		require.NoError(t, err)
		if users > 0 {
			all[fmt.Sprint(question...)] += users
		}
	}
	for _, p := range r.People {
		n, err := strconv.Atoi(p.N.String())
		require.NoError(t, err)
		add(p.Users, "people|", p.By, "|", p.Name, "|", p.Week, "|", min(n, api.PressureMost))
	}
	for _, l := range r.AtLimits {
		add(l.Users, "at|", l.Segment, "|", l.Name)
	}
	for _, c := range r.Campaigns {
		add(c.Sends, "sends|", c.M, "|", c.NS, "|", c.CH, "|", c.Week)
		add(c.Released, "released|", c.M, "|", c.NS, "|", c.CH, "|", c.Week)
	}
	for _, h := range r.Held {
		add(h.Users, "held|", h.M, "|", h.NS, "|", h.CH, "|", h.Week)
		add(h.Users, "held in all|", h.M, "|", h.NS, "|", h.CH)
	}
	for _, k := range r.Taken {
		add(k.Users, "taken|", k.M, "|", k.NS, "|", k.CH, "|", k.ByM, "|", k.ByNS, "|", k.ByCH)
	}
	return all
}

// numbersOf returns the same numbers of an answer.
func numbersOf(p *api.Pressure) map[string]int64 {
	all := map[string]int64{}
	add := func(n int64, question ...any) {
		if n > 0 {
			all[fmt.Sprint(question...)] += n
		}
	}
	name := func(m *api.PressureMessage) string { return m.MessageID + "|" + m.Namespace + "|" + m.Channel }
	for i := range p.People {
		for week, s := range p.People[i].Weeks {
			for n, users := range s.Got {
				add(users, "people|", p.People[i].By, "|", p.People[i].Name, "|", week, "|", n+1)
			}
		}
	}
	for i := range p.AtLimits {
		for _, l := range p.AtLimits[i].Limits {
			add(l.Users, "at|", p.AtLimits[i].Segment, "|", l.Name)
		}
	}
	for i := range p.Campaigns {
		c := &p.Campaigns[i]
		for week := range c.Messages {
			add(c.Messages[week], "sends|", name(&c.PressureMessage), "|", week)
			add(c.Released[week], "released|", name(&c.PressureMessage), "|", week)
			add(c.HeldBack[week], "held|", name(&c.PressureMessage), "|", week)
		}
	}
	for i := range p.HeldBack {
		h := &p.HeldBack[i]
		add(h.Users, "held in all|", name(&h.PressureMessage))
		for k := range h.TakenBy {
			add(h.TakenBy[k].Users, "taken|", name(&h.PressureMessage), "|", name(&h.TakenBy[k].PressureMessage))
		}
	}
	return all
}
