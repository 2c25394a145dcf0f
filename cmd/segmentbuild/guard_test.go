package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/objects/s3test"
	"capper/internal/segments/publish"
	"capper/internal/terminal"
)

// upTo is the ids 1 … n, one a line.
func upTo(n int) string {
	var b strings.Builder
	for id := range n {
		fmt.Fprintln(&b, id+1)
	}
	return b.String()
}

// command runs the program with standard input and returns its status, report and talk.
func command(t *testing.T, stdin string, args ...string) (int, string, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), args, strings.NewReader(stdin), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// publishedAt makes a generation of one segment live, as of an earlier time.
func publishedAt(t *testing.T, root string, at time.Time, users int) {
	t.Helper()
	publishedUsers(t, root, at, 0, users)
}

// publishedUsers does so with the users first+1 … last.
func publishedUsers(t *testing.T, root string, at time.Time, first, last int) {
	t.Helper()
	store, err := objects.Open(t.Context(), root, objects.S3Config{})
	require.NoError(t, err)
	base, err := publish.ReadLiveState(t.Context(), store)
	require.NoError(t, err)
	var set bitmap.Set
	for id := first; id < last; id++ {
		set.Add(uint32(id + 1))
	}
	p := publish.Publisher{Location: store, Clock: func() time.Time { return at }}
	_, err = p.Publish(t.Context(), &publish.Candidate{Names: []string{"active"},
		Bitmaps: []*bitmap.Bitmap{set.Bitmap()}}, base, "")
	require.NoError(t, err)
}

// 19 % of a segment's users lost every night pass every night: the week does not.
func TestDriftOfAWeekIsRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	now, users := time.Now(), 200_000
	for age := 9; age > 0; age-- {
		publishedAt(t, root, now.AddDate(0, 0, -age), users)
		users = users * 81 / 100
	}
	build := func(args ...string) (int, string, string) {
		return command(t, upTo(users), append([]string{"build", "--to", root, "--segment", "active=-"}, args...)...)
	}
	status, report, talk := build()
	require.Equal(t, int(terminal.Refused), status)
	require.Contains(t, report, "drift since "+now.AddDate(0, 0, -7).UTC().Format("20060102T"))
	require.Contains(t, talk, `segment "active" changes by 77.1 % since `)
	require.Contains(t, talk, "at most 50 % is allowed in a week: 0 users added, 101203 removed, 131220 before")
	require.NotContains(t, talk, "19 %", "since yesterday it is within the bounds")

	status, report, _ = build("--json", "--max-week-change", "80%", "--max-unassigned", "80%", "--dry-run")
	require.Equal(t, int(terminal.Done), status)
	var parsed buildReport
	require.NoError(t, json.Unmarshal([]byte(report), &parsed))
	require.InDelta(t, 19.0, parsed.Changes[0].Percent, 0.01)
	require.InDelta(t, 19.0, parsed.NoSegment.Percent, 0.01)
	require.InDelta(t, 77.1, parsed.Week.Changes[0].Percent, 0.1)
	require.EqualValues(t, 101_203, parsed.Week.NoSegment.Fall)
	require.NotEmpty(t, parsed.Week.Generation)

	status, _, talk = build("--force", "--reason", "sign-ups are closed")
	require.Equal(t, int(terminal.Done), status, talk)
	status, report, talk = command(t, upTo(users*81/100), "build", "--to", root, "--segment", "active=-")
	require.Equal(t, int(terminal.Done), status, talk)
	require.NotContains(t, report, "drift since", "a forced generation is where somebody has looked")
}

// 3 % that come and 1 % that go every night are 30 % of a week ago: that is no accident.
func TestUsualGrowthPassesEveryNight(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	now, first, last := time.Now(), 0, 200_000
	for age := 9; age > 0; age-- {
		publishedUsers(t, root, now.AddDate(0, 0, -age), first, last)
		first, last = first+(last-first)/100, last+(last-first)*3/100
	}
	ids := strings.SplitAfter(upTo(last), "\n")[first:]
	status, report, talk := command(t, strings.Join(ids, ""), "build", "--to", root, "--segment", "active=-", "--json")
	require.Equal(t, int(terminal.Done), status, talk)
	var parsed buildReport
	require.NoError(t, json.Unmarshal([]byte(report), &parsed))
	require.InDelta(t, 4.0, parsed.Changes[0].Percent, 0.1)
	require.InDelta(t, 29.7, parsed.Week.Changes[0].Percent, 0.1)
}

// What is live already goes live again whatever drifted: nothing changes by it.
func TestAnUnchangedBuildIsNotHeldUpByTheWeek(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	publishedAt(t, root, time.Now().AddDate(0, 0, -8), 100)
	publishedAt(t, root, time.Now().AddDate(0, 0, -1), 50)
	status, report, talk := command(t, upTo(50), "build", "--to", root, "--segment", "active=-")
	require.Equal(t, int(terminal.Done), status, talk)
	require.Contains(t, report, "unchanged: ")
	status, _, talk = command(t, upTo(51), "build", "--to", root, "--segment", "active=-")
	require.Equal(t, int(terminal.Refused), status, talk)
}

// The age of an object in S3 is that of its last write.
func TestTheAgeOfAnObjectInS3(t *testing.T) {
	t.Parallel()
	location := "s3://" + s3test.Bucket(t)
	store, err := objects.Open(t.Context(), location, objects.S3Config{})
	require.NoError(t, err)
	_, err = store.Put(t.Context(), "part-1.txt", []byte("1\n"))
	require.NoError(t, err)
	body, _, err := objects.NewS3Files(objects.S3Config{}).Open(t.Context(), location+"/part-1.txt")
	require.NoError(t, err)
	defer body.Close()
	at, ok := objects.ChangedAt(body)
	require.True(t, ok)
	require.WithinDuration(t, time.Now(), at, time.Hour)
	_, ok = objects.ChangedAt(io.NopCloser(strings.NewReader("")))
	require.False(t, ok)
}
