package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/app"
	"capper/internal/config"
	"capper/internal/terminal"
	"capper/internal/testkit"
	"capper/internal/whatif"
)

// The limits of the recorded service, before and after a reload, and of the other one. What they
// remember is as long, so that it does not matter when a store forgets.
const (
	recordedLimits = `channels: {push: 1, email: 2}
limits:
  default: [{name: daily, max: 1, window: 24h}, {name: week, max: 4, calendar: week, timezone: Asia/Singapore},
      {name: year, max: 99, window: 8784h}]
  segments:
    active: [{name: daily, max: 2, window: 24h}, {name: gap, max: 1, window: 2h, channels: [push]},
        {name: strict, max: 1, window: 48h, shadow: true}]
quiet: [{from: "22:00", to: "06:00", channels: [push], zone: Europe/Berlin}]
suppress: {opted-out: all}
`
	otherLimits = `channels: {push: 1, email: 2}
limits:
  default: [{name: weekly, max: 2, window: 168h}, {name: year, max: 99, window: 8784h}]
  segments:
    active: [{name: daily, max: 2, window: 24h}, {name: gap, max: 1, window: 3h, channels: [push]},
        {name: strict, max: 1, window: 24h, shadow: true}]
holdout: {percent: 5, salt: "a"}
quiet: [{from: "22:00", to: "06:00", channels: [push], zone: Europe/Berlin}]
suppress: {opted-out: all}
`
	liveSets = "sets: {opted-out: {live: true}}\n" // calls alone make the set
)

// decider is a service in this process.
type decider struct {
	*client.Client
	t       *testing.T
	dir     string
	service *app.Service
	sends   int
	denied  map[string]int64
}

func startDecider(t *testing.T, clock *testkit.Clock, segments, fragment string) *decider {
	d := &decider{t: t, dir: t.TempDir(), denied: map[string]int64{}}
	d.write(segments, fragment)
	watcher, err := config.NewWatcher(d.file(), clock.Now)
	require.NoError(t, err)
	log := new(testkit.Log)
	d.service, err = app.Start(t.Context(), app.Config{Watcher: watcher, Log: log, Clock: clock.Now})
	require.NoError(t, err, "%s", log)
	t.Cleanup(func() { require.NoError(t, d.service.Stop()) })
	d.Client, err = client.New(client.Config{URL: "http://" + d.service.Addr().String()})
	require.NoError(t, err)
	return d
}

func (d *decider) file() string { return filepath.Join(d.dir, "capper.yaml") }

func (d *decider) write(segments, fragment string) {
	write(d.t, d.file(), fmt.Sprintf("server: {listen: \"127.0.0.1:0\", stop_delay: 0s, call_timeout: "+
		"30s}\nsegments: {source: %s, refresh: 100ms, cache_dir: cache}\nstore: {embedded: {path: log.db}}\n%s",
		segments, fragment))
}

// filter asks, and counts what is answered.
func (d *decider) filter(r *client.FilterRequest) (allowed int64) {
	got, err := d.Filter(d.t.Context(), r)
	require.NoError(d.t, err)
	require.Empty(d.t, got.Unavailable)
	d.sends += len(got.Allowed) - len(got.Replayed)
	for _, denial := range got.Denied {
		d.denied[denial.Limit]++
	}
	return int64(len(got.Allowed))
}

// settled waits until the service has the generation and the configuration of the file.
func (d *decider) settled(generation string) {
	want, err := config.Load(d.file())
	require.NoError(d.t, err)
	testkit.Eventually(d.t, func() bool {
		status, err := d.Status(d.t.Context())
		require.NoError(d.t, err)
		return status.ConfigVersion == want.Version && (generation == "" || status.Segments.Generation != generation)
	})
}

func (d *decider) generation() string {
	status, err := d.Status(d.t.Context())
	require.NoError(d.t, err)
	return status.Segments.Generation
}

// asked is what `capper whatif` answers.
func asked(t *testing.T, status terminal.Status, args ...string) *whatif.Result {
	var out, talk bytes.Buffer
	got := run(t.Context(), append([]string{"whatif", "--json"}, args...), strings.NewReader(""), &out, &talk)
	require.Equal(t, int(status), got, "%s%s", &out, &talk)
	result := &whatif.Result{}
	require.NoError(t, json.Unmarshal(out.Bytes(), result), "%s", &out)
	return result
}

// What one service recorded, under limits that were reloaded and segments that were published
// anew meanwhile, is replayed under the limits of another, which was asked the same at the same times.
func TestWhatIfIsWhatAServiceWithTheOtherLimitsAnswered(t *testing.T) {
	t.Parallel()
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	clock := testkit.NewClockAt(time.Now().Add(-30 * 24 * time.Hour).Truncate(time.Second))
	segments := filepath.Join(t.TempDir(), "segments")
	publish(t, segments, "new=1-300", "active=301-600")
	recorded := startDecider(t, clock, segments, recordedLimits+liveSets+"audit: {to: audit}\n")
	other := startDecider(t, clock, segments, otherLimits+liveSets)
	for step := range 160 {
		clock.Advance([]time.Duration{0, time.Millisecond, time.Minute, time.Hour, 3 * time.Hour,
			11 * time.Hour}[r.IntN(6)])
		switch step {
		case 60:
			recorded.write(segments, strings.Replace(recordedLimits, "daily, max: 1", "daily, max: 2", 1)+
				liveSets+"audit: {to: audit}\n")
			recorded.settled("")
		case 100:
			before := recorded.generation()
			publish(t, segments, "new=1-500", "active=501-800")
			recorded.settled(before)
			other.settled(before)
		}
		users := make([]uint32, 1+r.IntN(80))
		for i := range users {
			users[i] = 1 + r.Uint32N(900)
		}
		if r.IntN(4) == 0 {
			half := len(users) / 2
			for _, d := range []*decider{recorded, other} {
				_, err := d.ChangeSet(t.Context(), "opted-out", client.SetChange{Add: users[:half],
					Remove: without(users[half:], users[:half])})
				require.NoError(t, err)
			}
		}
		message, channel := fmt.Sprint("m-", r.IntN(40)), []string{"", "push", "email"}[r.IntN(3)]
		if r.IntN(10) == 0 {
			for _, d := range []*decider{recorded, other} {
				_, err := d.Release(t.Context(), &client.ReleaseRequest{MessageID: message, Channel: channel,
					Users: users})
				require.NoError(t, err)
			}
			continue
		}
		exempt := r.IntN(12) == 0
		for _, d := range []*decider{recorded, other} {
			d.filter(&client.FilterRequest{MessageID: message, Channel: channel, Users: users, Exempt: exempt})
		}
	}
	require.NoError(t, recorded.service.Stop()) // what was recorded is on the disk

	limits := filepath.Join(t.TempDir(), "other.yaml")
	write(t, limits, otherLimits)
	got := asked(t, terminal.Done, "--config", recorded.file(), "--limits", limits)
	require.EqualValues(t, recorded.sends, got.Total.Before.Sends)
	require.EqualValues(t, other.sends, got.Total.After.Sends)
	before, after := map[string]int64{}, map[string]int64{}
	for _, change := range got.Limits {
		before[change.Name], after[change.Name] = change.Before, change.After
	}
	for name := range before {
		require.Equal(t, recorded.denied[name], before[name], name)
		require.Equal(t, other.denied[name], after[name], name)
	}
	require.NotEqual(t, got.Total.Before, got.Total.After)
	require.Positive(t, before["suppressed"])
	require.Len(t, got.Configs, 2)

	checkPages(t, recorded, limits)
	checkGone(t, recorded, limits, segments)
}

// without is the users but for those of another list.
func without(users, others []uint32) []uint32 {
	return slices.DeleteFunc(slices.Clone(users), func(user uint32) bool { return slices.Contains(others, user) })
}

// checkPages asks for people: tables, and a page that needs nothing from elsewhere.
func checkPages(t *testing.T, recorded *decider, limits string) {
	page := filepath.Join(t.TempDir(), "page.html")
	var out, talk bytes.Buffer
	got := run(t.Context(), []string{"whatif", "--config", recorded.file(), "--limits", limits, "--html", page,
		"--since", "20d"}, strings.NewReader(""), &out, &talk)
	require.Zero(t, got, "%s", &talk)
	require.Contains(t, out.String(), "DENIALS BY LIMIT")
	html := readFile(t, page)
	for _, part := range []string{"<h2>By segment</h2>", `xml;base64,`, `alt="Sends a day`,
		"prefers-color-scheme: dark"} {
		require.Contains(t, html, part)
	}
	for _, elsewhere := range []string{"<script", "http://", "https://", "#ZgotmplZ", "@import", "url("} {
		require.NotContains(t, html, elsewhere)
	}
}

// checkGone asks by a generation that is not there any more, and by one that stands in.
func checkGone(t *testing.T, recorded *decider, limits, segments string) {
	live := recordedGenerations(t, segments)
	require.Len(t, live, 2)
	require.NoError(t, os.Remove(filepath.Join(segments, "generations", live[0]+".json")))
	var out, talk bytes.Buffer
	got := run(t.Context(), []string{"whatif", "--config", recorded.file(), "--limits", limits}, strings.NewReader(""),
		&out, &talk)
	require.Equal(t, int(terminal.BadInput), got)
	require.Contains(t, talk.String(), live[0])
	require.Contains(t, talk.String(), "use --generation to name one existing generation for all calls")
	named := asked(t, terminal.Done, "--config", recorded.file(), "--limits", limits, "--generation", live[1])
	require.NotZero(t, named.Asked)
	require.Zero(t, named.Total.After.Unjudged, "the record shows the set that no generation has")
	for name, want := range map[string]string{"nosuch": "must be a generation name", live[0]: "does not exist"} {
		talk.Reset()
		require.Equal(t, int(terminal.Usage), run(t.Context(), []string{"whatif", "--config", recorded.file(),
			"--generation", name}, strings.NewReader(""), &out, &talk), name)
		require.Contains(t, talk.String(), want)
	}
	faulty := filepath.Join(t.TempDir(), "faulty.yaml")
	write(t, faulty, "limits: {default: {dayly: 1}}\n")
	out.Reset()
	require.Equal(t, int(terminal.BadInput), run(t.Context(), []string{"whatif", "--config", recorded.file(),
		"--limits", faulty}, strings.NewReader(""), &out, &talk))
	require.Contains(t, out.String(), faulty+":1:20: limits.default.dayly")
	talk.Reset()
	require.Equal(t, int(terminal.Usage), run(t.Context(), []string{"whatif", "--config", recorded.file()},
		strings.NewReader(""), &out, &talk))
	require.Contains(t, talk.String(), "error: whatif: set --limits to try other limits")
}

func recordedGenerations(t *testing.T, segments string) (names []string) {
	entries, err := os.ReadDir(filepath.Join(segments, "generations"))
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".json"))
	}
	return names
}

// TestTheAPIAnswersWhatTheCommandAnswers checks that POST /v1/whatif returns the numbers of the command for limits in
// which the same numbers are changed.
func TestTheAPIAnswersWhatTheCommandAnswers(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 8))
	clock := testkit.NewClockAt(time.Now().Add(-20 * 24 * time.Hour).Truncate(time.Second))
	segments := filepath.Join(t.TempDir(), "segments")
	publish(t, segments, "new=1-300", "active=301-600")
	d := startDecider(t, clock, segments, recordedLimits+liveSets+"audit: {to: audit}\n")
	var since time.Time
	for step := range 80 {
		clock.Advance([]time.Duration{time.Minute, time.Hour, 11 * time.Hour}[r.IntN(3)])
		if step == 20 {
			since = clock.Now()
		}
		users := make([]uint32, 1+r.IntN(80))
		for i := range users {
			users[i] = 1 + r.Uint32N(900)
		}
		d.filter(&client.FilterRequest{MessageID: fmt.Sprint("m-", r.IntN(40)), Channel: []string{"push",
			"email"}[r.IntN(2)], Users: users})
	}
	one, three := 1, 3
	got, err := d.WhatIf(t.Context(), &api.WhatIfRequest{Since: since, Until: clock.Now(), Campaigns: 1000,
		Limits: []api.LimitChange{
			{Segment: "active", Limit: "daily", Max: &one}, {Segment: "active", Limit: "gap", Remove: true},
			{Segment: "default", Limit: "week", Max: &three},
		}})
	require.NoError(t, err)
	limits := filepath.Join(t.TempDir(), "other.yaml")
	write(t, limits, strings.NewReplacer("{name: daily, max: 2", "{name: daily, max: 1", "{name: week, max: 4",
		"{name: week, max: 3", "{name: gap, max: 1, window: 2h, channels: [push]},", "").Replace(recordedLimits))
	result := asked(t, terminal.Done, "--config", d.file(), "--limits", limits, "--since",
		since.Format(time.RFC3339Nano), "--until", clock.Now().Format(time.RFC3339Nano))
	require.NotEqual(t, result.Total.Before, result.Total.After)
	require.Positive(t, got.Total.Lost)
	for name, want := range map[string][2]any{
		"total": {result.Total, got.Total}, "days": {result.Days, got.Days}, "users": {result.Users, got.Users},
		"segments": {result.Segments, got.Segments}, "channels": {result.Channels, got.Channels},
		"campaigns": {result.Campaigns, got.Campaigns}, "limits": {result.Limits, got.Limits},
		"shadow": {result.Shadow, got.Shadow}, "decided": {result.Decided, got.Decided},
		"versions": {result.Configs, got.ConfigVersions}, "from": {result.Warm, got.ReplayedFrom},
	} {
		command, err := json.Marshal(want[0])
		require.NoError(t, err)
		answer, err := json.Marshal(want[1])
		require.NoError(t, err)
		require.JSONEq(t, string(command), string(answer), name)
	}
}

// TestWhatIfKnowsWhomACallAddedAndRemoved checks that people who unsubscribed by a call, and people who came back by
// one, stay so in a replay of a change that plays no part: by the command and by the API.
func TestWhatIfKnowsWhomACallAddedAndRemoved(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(time.Now().Add(-24 * time.Hour).Truncate(time.Second))
	segments := filepath.Join(t.TempDir(), "segments")
	list := filepath.Join(t.TempDir(), "list.txt")
	write(t, list, "3\n4\n")
	out, err := exec.Command(segmentbuild(t), "build", "--to", segments, "--force", "--reason", "test", "--segment",
		"new="+list, "--set", "opted-out="+list, "--as-of",
		"opted-out="+clock.Now().Add(-time.Hour).UTC().Format(time.RFC3339)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	const limits = "channels: {email: 1}\nlimits: {default: [{name: weekly, max: 2, window: 168h}]}\n" +
		"suppress: {opted-out: all}\n"
	d := startDecider(t, clock, segments, limits+"audit: {to: audit}\n")
	_, err = d.ChangeSet(t.Context(), "opted-out", client.SetChange{Add: []uint32{1}, Remove: []uint32{3}})
	require.NoError(t, err)
	clock.Advance(time.Minute)
	require.EqualValues(t, 2, d.filter(&client.FilterRequest{MessageID: "wi-1", Channel: "email",
		Users: []uint32{1, 2, 3, 4}}))
	clock.Advance(time.Minute)

	four := 4
	answer, err := d.WhatIf(t.Context(), &api.WhatIfRequest{Limits: []api.LimitChange{{Segment: "default",
		Limit: "weekly", Max: &four}, {Segment: "new", Limit: "weekly", Max: &four}}})
	require.NoError(t, err)
	require.EqualValues(t, []int64{4, 2, 2}, []int64{answer.Judged, answer.Total.Before.Sends,
		answer.Total.After.Sends})
	require.Zero(t, answer.Total.Gained+answer.Total.Lost)
	require.Equal(t, []api.WhatIfChange{{Name: "suppressed", Before: 2, After: 2}}, answer.Limits)

	require.NoError(t, d.service.Stop())
	other := filepath.Join(t.TempDir(), "other.yaml")
	write(t, other, strings.Replace(limits, "max: 2", "max: 4", 1))
	result := asked(t, terminal.Done, "--config", d.file(), "--limits", other)
	require.EqualValues(t, []int64{4, 2, 2}, []int64{result.Judged, result.Total.Before.Sends,
		result.Total.After.Sends})
	require.Zero(t, result.Total.Gained+result.Total.Lost)
	require.EqualValues(t, 2, result.Limits[0].After)
}
