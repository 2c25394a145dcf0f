package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/terminal"
	"capper/internal/testkit"
)

// pressed is what `capper pressure` prints.
func pressed(t *testing.T, status terminal.Status, args ...string) string {
	t.Helper()
	var out, talk bytes.Buffer
	got := run(t.Context(), append([]string{"pressure"}, args...), strings.NewReader(""), &out, &talk)
	require.Equal(t, int(status), got, "%s%s", &out, &talk)
	return out.String()
}

// TestPressureOfTheAuditIsThatOfTheService counts through a service and from the audit of that service, without and
// with its configuration, and compares both with what the service answered.
func TestPressureOfTheAuditIsThatOfTheService(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	clock := testkit.NewClockAt(time.Now().Add(-30 * 24 * time.Hour).Truncate(time.Second))
	segments := filepath.Join(t.TempDir(), "segments")
	publish(t, segments, "new=1-300", "active=301-600")
	const limits = "channels: {push: 1, email: 2}\nlimits: {default: {daily: 1, weekly: 3}}\naudit: {to: audit}\n"
	d := startDecider(t, clock, segments, limits)
	sent := int64(0) // in the last week, which begins with the call 40
	for i := range 60 {
		clock.Advance(time.Duration(r.IntN(9)) * time.Hour)
		if i == 40 {
			sent = 0
			clock.Advance(7 * 24 * time.Hour)
		}
		var users []uint32
		for user := range uint32(900) {
			if r.IntN(8) == 0 {
				users = append(users, 1+user)
			}
		}
		answer, err := d.Filter(t.Context(), &client.FilterRequest{MessageID: fmt.Sprint("m-", i/2),
			Channel: []string{"push", "email"}[i/2%2], Users: users})
		require.NoError(t, err)
		sent += int64(len(answer.Allowed) - len(answer.Replayed))
	}
	clock.Advance(time.Second)
	until := clock.Now().UTC().Format(time.RFC3339)
	url := "http://" + d.service.Addr().String()
	decode := func(text string) (p api.Pressure) {
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		return p
	}
	service := decode(pressed(t, terminal.Done, "--url", url, "--until", until, "--json"))
	require.NotEmpty(t, service.HeldBack)
	require.NotEmpty(t, service.People)
	require.Equal(t, sent, service.People[0].Weeks[0].Messages)
	require.Equal(t, service, decode(pressed(t, terminal.Done, "--config", d.file(), "--until", until, "--json")))
	require.Equal(t, service, decode(pressed(t, terminal.Done, "--audit", filepath.Join(d.dir, "audit"),
		"--segments", segments, "--until", until, "--json")), "the limits of the latest call")

	table, err := csv.NewReader(strings.NewReader(pressed(t, terminal.Done, "--url", url, "--until", until, "--csv",
		"people"))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, "got_20+", table[0][len(table[0])-1])
	require.Len(t, table, 1+5*len(service.People))
	text := pressed(t, terminal.Done, "--url", url, "--until", until, "--channel", "push", "--weeks", "1")
	require.Contains(t, text, "PEOPLE BY MESSAGES IN A WEEK")
	require.NotContains(t, text, "channel    email")

	lists := map[string]string{}
	for name, args := range map[string][]string{"service": {"--url", url}, "audit": {"--config", d.file()}} {
		file := filepath.Join(t.TempDir(), "users.txt")
		pressed(t, terminal.Done, append(args, "--until", until, "--segment", "active", "--users", file)...)
		lists[name] = readFile(t, file)
	}
	require.Equal(t, lists["service"], lists["audit"])
	any := int64(0)
	for _, row := range service.AtLimits {
		if row.Segment == "active" {
			any = row.Any
		}
	}
	require.EqualValues(t, any, strings.Count(lists["audit"], "\n"))
	require.Positive(t, any)

	pressed(t, terminal.Usage, "--weeks", "0")
	pressed(t, terminal.Usage, "--limit", "daily")
	pressed(t, terminal.Usage, "--config", d.file(), "--segment", "none", "--users", filepath.Join(t.TempDir(), "x"))
	pressed(t, terminal.Usage, "--config", d.file(), "--channel", "fax")
}
