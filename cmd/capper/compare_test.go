package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/app"
	"capper/internal/audit/verify"
	"capper/internal/cli"
	"capper/internal/config"
	"capper/internal/testkit"
)

// aSend names a send, as its callers know it.
type aSend struct {
	user                        uint32
	message, namespace, channel string
}

// compared is a service whose store is compared with its audit, and the sends that its answers promised.
type compared struct {
	t        *testing.T
	r        *rand.Rand
	dir      string
	store    string // of the configuration
	limits   string
	audit    bool
	clock    func() time.Time
	service  *app.Service
	teams    map[string]*client.Client // by namespace
	promised map[aSend]time.Time
	erased   map[uint32]time.Time
}

// The limits of a comparison: the longest window is a day, then six hours.
const (
	longLimits  = "{default: [{name: short, max: 3, window: 6h}, {name: long, max: 6, window: 24h}]}"
	shortLimits = "{default: [{name: short, max: 3, window: 6h}]}"
)

// teams are the namespaces of a comparison; that of "" may do everything.
var teams = []string{"", "growth", "crm"}

func newCompared(t *testing.T, store string, seed uint64, clock func() time.Time) *compared {
	c := &compared{
		t: t, r: rand.New(rand.NewPCG(seed, seed)), dir: t.TempDir(), store: store, clock: clock, audit: true,
		limits: longLimits, promised: map[aSend]time.Time{}, erased: map[uint32]time.Time{},
	}
	publish(t, c.dir+"/segments", "new=1-1000")
	t.Cleanup(func() { c.stop() })
	c.start()
	return c
}

func (c *compared) file() string { return c.dir + "/capper.yaml" }

func (c *compared) configure() {
	keys := ""
	for _, team := range teams {
		namespace, scopes := "namespace: "+team+", ", "filter, read"
		if team == "" {
			namespace, scopes, team = "", "filter, read, admin", "all"
		}
		sum := sha256.Sum256([]byte(team + ".secret"))
		keys += fmt.Sprintf("    - {client: %s, %sid: %[1]s, sha256: %[3]x, scopes: [%s]}\n", team, namespace, sum,
			scopes)
	}
	audit := ""
	if c.audit {
		audit = "audit: {to: audit, roll: 1s}\n"
	}
	write(c.t, c.file(), fmt.Sprintf("server:\n  listen: 127.0.0.1:0\n  stop_delay: 0s\n  call_timeout: 30s\n  "+
		"api_keys:\n%s"+
		"segments: {source: segments, refresh: 100ms, cache_dir: cache}\nstore: %s\nchannels: {push: 1, email: "+
		"2}\nlimits: %s\n%s",
		keys, c.store, c.limits, audit))
}

func (c *compared) start() {
	c.configure()
	watcher, err := config.NewWatcher(c.file(), c.clock)
	require.NoError(c.t, err)
	log := new(testkit.Log)
	c.service, err = app.Start(c.t.Context(), app.Config{Watcher: watcher, Log: log, Clock: c.clock})
	require.NoError(c.t, err, "%s", log)
	c.teams = map[string]*client.Client{}
	for _, team := range teams {
		key := team + ".secret"
		if team == "" {
			key = "all.secret"
		}
		c.teams[team], err = client.New(client.Config{URL: c.url(), Key: key})
		require.NoError(c.t, err)
	}
}

func (c *compared) url() string { return "http://" + c.service.Addr().String() }

func (c *compared) stop() {
	if c.service != nil {
		require.NoError(c.t, c.service.Stop())
		c.service = nil
	}
}

func (c *compared) restart() {
	c.stop()
	c.start()
}

// reload puts other limits in force.
func (c *compared) reload(limits string) {
	c.limits = limits
	c.configure()
	want, err := config.Load(c.file())
	require.NoError(c.t, err)
	testkit.Eventually(c.t, func() bool {
		status, err := c.teams[""].Status(c.t.Context())
		require.NoError(c.t, err)
		return status.ConfigVersion == want.Version
	})
}

func (c *compared) users(most int) []uint32 {
	users := make([]uint32, 1+c.r.IntN(most))
	for i := range users {
		users[i] = c.r.Uint32N(2000) * 97
	}
	return users
}

// step makes one random call.
func (c *compared) step(n int) {
	team, channel := teams[c.r.IntN(len(teams))], []string{"", "push", "email"}[c.r.IntN(3)]
	message, ctx := fmt.Sprint("m-", c.r.IntN(1+n)), c.t.Context()
	switch kind := c.r.IntN(20); kind {
	case 0, 1, 2:
		users := c.users(100)
		_, err := c.teams[team].Release(ctx, &client.ReleaseRequest{MessageID: message, Channel: channel, Users: users})
		require.NoError(c.t, err)
		for send := range c.promised {
			if send.message == message && send.namespace == team && (channel == "" || send.channel == channel) &&
				slices.Contains(users, send.user) {
				delete(c.promised, send)
			}
		}
	case 3:
		for _, user := range c.users(5) {
			require.NoError(c.t, c.teams[""].Erase(ctx, user))
			c.erased[user] = c.clock()
			for send := range c.promised {
				if send.user == user {
					delete(c.promised, send)
				}
			}
		}
	case 4:
		c.restart()
	default:
		r := &client.FilterRequest{MessageID: message, Channel: channel, Users: c.users([]int{1, 3, 400}[c.r.IntN(3)])}
		at := c.clock()
		got, err := c.teams[team].Filter(ctx, r)
		require.NoError(c.t, err)
		require.Empty(c.t, got.Unavailable)
		for _, user := range got.Allowed {
			if !slices.Contains(got.Replayed, user) {
				c.promised[aSend{user, message, team, channel}] = at
			}
		}
	}
}

// verify runs `capper audit verify --store` as an operator does, and returns the report with the sends of its file.
func (c *compared) verify(status int, args ...string) (report *verify.Report, missing map[aSend]bool, talk string) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "missing.csv")
	args = append([]string{
		"audit", "verify", "--store", "--json", "--settle", "2s", "--url", c.url(), "--config", c.file(), "--missing",
		file,
		"--users-per-second", "1000000",
	}, args...)
	cmd := exec.Command("capper", args...)
	cmd.Env = append(os.Environ(), cli.KeyVariable+"=all.secret")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	_ = cmd.Run()
	require.Equal(c.t, status, cmd.ProcessState.ExitCode(), "%s%s", &out, &said)
	report = &verify.Report{}
	require.NoError(c.t, json.Unmarshal(out.Bytes(), report), "%s", &out)
	rows, err := csv.NewReader(strings.NewReader(readFile(c.t, file))).ReadAll()
	require.NoError(c.t, err)
	require.Equal(c.t, []string{"user_id", "at", "channel", "message_id", "namespace"}, rows[0])
	missing = map[aSend]bool{}
	for _, row := range rows[1:] {
		user, err := strconv.ParseUint(row[0], 10, 32)
		require.NoError(c.t, err)
		missing[aSend{uint32(user), row[3], row[4], row[2]}] = true
	}
	require.Len(c.t, missing, len(rows)-1)
	require.EqualValues(c.t, len(missing), report.Store.Missing)
	require.Equal(c.t, len(missing), report.Found[verify.NotInStore])
	return report, missing, said.String()
}

// whole demands that the store holds all that the audit names, and that the audit names all that was promised.
func (c *compared) whole(since time.Duration) {
	c.t.Helper()
	c.restart() // what was recorded is on the disk
	report, missing, _ := c.verify(0)
	require.Empty(c.t, missing)
	require.Equal(c.t, report.Store.Asked, report.Store.Recorded+report.Store.Changed)
	young := int64(len(c.youngerThan(since)))
	require.GreaterOrEqual(c.t, report.Store.Asked, young, "%+v", report.Store)
	require.Greater(c.t, young, int64(500), "the history is of some size")
}

// youngerThan is the promised sends within a window, but for those within seconds after an erasure of the user.
func (c *compared) youngerThan(window time.Duration) map[aSend]bool {
	young := map[aSend]bool{}
	for send, at := range c.promised {
		if erased, ok := c.erased[send.user]; at.After(c.clock().Add(-window)) &&
			(!ok || at.After(erased.Add(verify.EraseMargin))) {
			young[send] = true
		}
	}
	return young
}

// lost demands that exactly the promised sends of the users are missing that are younger than the window.
func (c *compared) lost(window time.Duration, of func(user uint32) bool, args ...string) *verify.Report {
	c.t.Helper()
	report, missing, _ := c.verify(8, args...)
	want := c.youngerThan(window)
	maps.DeleteFunc(want, func(send aSend, _ bool) bool { return !of(send.user) })
	require.NotEmpty(c.t, want)
	require.Equal(c.t, want, missing)
	return report
}

// behind changes the store by a service that records nothing in the audit.
func (c *compared) behind(do func(api *client.Client)) {
	c.audit = false
	c.restart()
	do(c.teams[""])
	c.audit = true
	c.restart()
}

const day = 24 * time.Hour

// Days of random calls, restarts and reloads over the embedded store: nothing is missing. Then users lose
// their logs behind the audit's back: each of their sends within the longest window is named, and no other.
func TestTheStoreIsComparedWithTheAudit(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(time.Now().Add(-60 * 24 * time.Hour).Truncate(time.Second))
	c := newCompared(t, "{embedded: {path: log.db}}", 11, clock.Now)
	for n := range 300 {
		clock.Advance([]time.Duration{0, time.Millisecond, time.Minute, 10 * time.Minute, time.Hour}[c.r.IntN(5)])
		c.step(n)
	}
	c.whole(day - verify.ClockMargin)
	c.behind(func(api *client.Client) {
		for user := uint32(0); user < 200*97; user += 97 {
			require.NoError(t, api.Erase(t.Context(), user))
		}
	})
	report := c.lost(day-verify.ClockMargin, func(user uint32) bool { return user < 200*97 })
	require.Equal(t, "users 0 to 65535", report.Store.Places[0].Place)
	require.Len(t, report.Store.Places, 1)

	sampled, missing, _ := c.verify(8, "--sample", "30%", "--sample-salt", "a", "--files-only")
	again, same, _ := c.verify(8, "--sample", "30%", "--sample-salt", "a")
	require.Equal(t, missing, same, "a sample is the same again")
	require.Equal(t, sampled.Store.Asked, again.Store.Asked)
	require.Less(t, sampled.Store.Asked, report.Store.Asked/2)

	// Shorter limits look at less; what the longer ones remembered is no concern of theirs.
	c.reload(shortLimits)
	for n := range 50 {
		clock.Advance(time.Minute)
		c.step(n)
	}
	clock.Advance(7 * time.Hour)
	report, missing, _ = c.verify(0, "--files-only") // erased logs let some users have too much
	require.Empty(t, missing)
	require.Zero(t, report.Store.Asked)
}
