package ingest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/segments/publish"
)

func to[T any](v T) *T { return &v }

func TestBoundsOfABuildFile(t *testing.T) {
	t.Parallel()
	plan, err := parse([]byte(`
segments:
  - {name: vip, inputs: [vip.txt], max_change: 5%, max_week_change: 12.5, min_users: 1000, max_users: 270000000}
  - name: new
    inputs:
      - new.txt
      - {path: more.csv, min_files: 2, min_rows: 1000000, newer_than: 90m}
defaults: {newer_than: 36h, min_rows: 1}
tables: [{path: table.csv, min_rows: 0}]
max_change: 30%
max_unassigned: 0
allow_new: [new]
allow_first: [bad-rows, empty-files]
`), "", Input{}, &Plan{Bounds: publish.Bounds{MaxChange: 20}})
	require.NoError(t, err)
	require.Equal(t, publish.Bounds{MaxChange: 30, MaxUnassigned: to(0.0), New: []string{"new"},
		Of: map[string]publish.SegmentBounds{
			"vip": {MaxChange: to(5.0), MaxWeekChange: to(12.5), MinUsers: to(uint64(1000)),
				MaxUsers: to(uint64(270_000_000))}, "new": {},
		}, AllowFirst: []publish.Flaw{publish.BadRows, publish.EmptyFiles}}, plan.Bounds)
	require.Equal(t, Expect{MinRows: 1, NewerThan: 36 * time.Hour}, plan.Segments[0].Inputs[0].Expect)
	require.Equal(t, Expect{MinRows: 1, NewerThan: 36 * time.Hour}, plan.Segments[1].Inputs[0].Expect)
	require.Equal(t, Expect{MinFiles: 2, MinRows: 1_000_000, NewerThan: 90 * time.Minute},
		plan.Segments[1].Inputs[1].Expect)
	require.Equal(t, Expect{NewerThan: 36 * time.Hour}, plan.Tables[0].Expect)

	plan, err = parse([]byte("segments: [{name: vip, inputs: [vip.txt]}]"), "", Input{},
		&Plan{Bounds: publish.Bounds{MaxChange: 20}})
	require.NoError(t, err)
	require.Equal(t, 20.0, plan.Bounds.MaxChange, "what the file does not say stays")
	plan, err = parse([]byte("tables: [t.csv]\nallow_new: [vip]"), "", Input{}, &Plan{Order: []string{"vip"}})
	require.NoError(t, err, "--precedence names the segments")
	require.Equal(t, []string{"vip"}, plan.Bounds.New)
}

func TestBoundsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"segments: [{name: a, max_change: much}]": "segments[0].max_change: must be a " +
			"percentage such as 20%, got \"much\"",
		"segments: [{name: a, max_week_change: -1}]": "segments[0].max_week_change: must be a " +
			"percentage such as 20%, got -1",
		"segments: [{name: a, min_users: 3.7}]": "segments[0].min_users: must be a whole " +
			"number from 0, got 3.7",
		"segments: [{name: a, min_users: -3}]": "segments[0].min_users: must be a whole " +
			"number from 0, got -3",
		"segments: [{name: a, max_users: '7'}]": "segments[0].max_users: must be a whole " +
			"number from 0, got \"7\"",
		"segments: [{name: a, min_users: 8, max_users: " +
			"7}]": "segments[0].min_users: must be at most max_users, which is 7, got 8",
		"segments: [{name: a, inputs: [{path: x, min_files: many}]}]": "segments[0].inputs[0].min_files: must be a " +
			"whole number from 0, got \"many\"",
		"segments: [{name: a, inputs: [{path: x, min_rows: true}]}]": "segments[0].inputs[0].min_rows: must be a " +
			"whole number from 0, got true",
		"segments: [{name: a, inputs: [{path: x, newer_than: 36}]}]": "segments[0].inputs[0].newer_than: must be " +
			"a duration such as 36h, got 36",
		"tables: [{path: x, newer_than: -1h}]": "tables[0].newer_than: must be a " +
			"duration such as 36h, got \"-1h\"",
		"defaults: {newer_than: soon}": "defaults.newer_than: must be a duration " +
			"such as 36h, got \"soon\"",
		"segments: [{name: a, inputs: [{path: '-', newer_than: " +
			"1h}]}]": "segments[0].inputs[0].newer_than: must not be used with standard input, which has no age",
		"max_change: [1]": "max_change: must be a " +
			"percentage such as 20%, got a list",
		"max_unassigned: .inf": "max_unassigned: must be a " +
			"percentage such as 20%, got",
		"allow_new: [b]\nsegments: [{name: a}]": `allow_new[0]: "b": must be the name of a segment or set in this build`,
		"allow_first: [all]":                    `allow_first[0]: "all": must be one of [empty-segments empty-sets empty-files bad-rows]`,
		"sets: [{name: a, min_users: 3}]": "sets[0]: only_grows and bounds such as " +
			"max_change and min_users require publish: true in the same set",
		"segments: [{name: a, max_user: 3}]":                                      "max_user",
		"segments: [{name: a, inputs: [{path: x, max_change: 3}]}]":               "max_change",
		"sets: [{name: a, min_users: [1]}, {name: b, max_change: {a: 1}}]":        "sets[1]: only_grows and bounds",
		"segments: [{name: a, inputs: [x]}]\nmin_users: 3":                        "min_users",
		"segments: [{name: a, inputs: [x], newer_than: 3h}]\ndefaults: {path: x}": "newer_than",
	} {
		_, err := parse([]byte(text), "", Input{}, &Plan{})
		require.ErrorContains(t, err, want, text)
	}
}

func TestInputsThatFallShort(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	first := testFile(t, folder, "part-1.txt", "1\n2\n")
	testFile(t, folder, "part-2.txt", "3\nx\n")
	table := testFile(t, folder, "table.csv", "user_id,segment\n7,a\n")
	now := time.Now()
	require.NoError(t, os.Chtimes(first, now, now.Add(-37*time.Hour)))
	run := func(expect Expect) []string {
		in := Input{Path: filepath.Join(folder, "part-*.txt"), Expect: expect}
		plan := &Plan{Segments: []Definition{{Name: "a", Inputs: []Input{in}}},
			MaxBadRows: Tolerance{Rows: 1},
			Tables:     []Input{{Path: table, Expect: Expect{MinRows: expect.MinRows - 2}}}}
		result, err := Run(t.Context(), plan, Config{Now: now}, quiet)
		require.NoError(t, err)
		return result.Shortfalls
	}
	require.Empty(t, run(Expect{}))
	require.Empty(t, run(Expect{MinFiles: 2, MinRows: 3, NewerThan: 38 * time.Hour}))
	pattern := filepath.Join(folder, "part-*.txt")
	require.Equal(t, []string{
		table + ": 1 rows with a user, at least 2 are expected (min_rows)",
		first + " was written 37h0m0s ago, on " + now.Add(-37*time.Hour).UTC().Format(time.RFC3339) +
			": it must be less than 36h0m0s (newer_than)",
		pattern + ": 2 files, at least 3 are expected (min_files)",
		pattern + ": 3 rows with a user, at least 4 are expected (min_rows)",
	}, run(Expect{MinFiles: 3, MinRows: 4, NewerThan: 36 * time.Hour}), "bad rows hold no user")
}
