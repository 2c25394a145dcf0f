package ingest

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/segments/publish"
)

// TestTheAsOfOfASet checks the times of files, tables, combinations and standard input.
func TestTheAsOfOfASet(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return now.Add(time.Duration(n-12) * time.Hour) }
	at := func(n int, name, content string) string {
		path := testFile(t, folder, name, content)
		require.NoError(t, os.Chtimes(path, hour(n).Add(time.Microsecond), hour(n).Add(time.Microsecond)))
		return path
	}
	one, two := at(1, "one.txt", "1\n"), at(2, "two.txt", "2\n")
	table := at(3, "table.csv", "user_id,segment\n7,rows\n8,vip\n9,both\n")
	zones := at(4, "zones.csv", "user_id,name\n1,sg\n2,my\n")
	p := &Plan{
		Segments: []Definition{{Name: "vip", Inputs: inputs(one)}},
		Sets: []Definition{
			{Name: "newest", Publish: true, Inputs: inputs(two, one)},
			{Name: "union", Publish: true, Union: []string{"newest", "ingredient"}},
			{Name: "minus", Publish: true, Inputs: inputs(two), Minus: []string{"vip"}},
			{Name: "ingredient", Inputs: inputs(one)},
			{Name: "rows", Publish: true},
			{Name: "both", Publish: true, Inputs: inputs(one)},
			{Name: "country/sg", Publish: true, Inputs: inputs(one)},
			{Name: "piped", Publish: true, Inputs: inputs("-", two)},
			{Name: "of-piped", Publish: true, Union: []string{"newest", "piped"}},
			{Name: "future", Publish: true, Inputs: inputs(at(20, "future.txt", "1\n"))},
		},
		Tables:     inputs(table),
		SetTables:  []SetTable{{Prefix: "country/", Inputs: inputs(zones)}, {Prefix: "given/", Inputs: inputs(zones)}},
		Precedence: true,
	}
	require.NoError(t, p.SetAsOf("given/*", hour(-5)))
	require.NoError(t, p.SetAsOf("given/my", hour(-7)))
	for _, name := range []string{"vip", "ingredient", "nothing", "nothing/*"} {
		require.ErrorContains(t, p.SetAsOf(name, hour(1)), "must be the name of a set to publish", name)
	}
	result, err := Run(t.Context(), p, Config{Now: now, Stdin: strings.NewReader("5\n")}, quiet)
	require.NoError(t, err)
	want := map[string]time.Time{
		"newest": hour(2), "union": hour(1), "minus": hour(2), "rows": hour(3), "both": hour(3), "country/sg": hour(4),
		"country/my": hour(4), "piped": {}, "of-piped": {}, "future": now, "given/sg": hour(-5), "given/my": hour(-7),
	}
	require.Len(t, result.Candidate.Sets, len(want))
	for _, s := range result.Candidate.Sets {
		require.Equal(t, want[s.Name], s.AsOf, s.Name)
		require.Equal(t, strings.HasPrefix(s.Name, "given/"), s.AsOfGiven, s.Name)
	}
}

func TestTheAsOfOfABuildFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	list := testFile(t, folder, "list.txt", "1\n")
	file := func(set string) string {
		return testFile(t, folder, "segments.yaml", "segments: [{name: vip, inputs: ["+list+"]}]\nsets:\n  - "+set+"\n")
	}
	plan, err := Load(file("{name: opted-out, publish: true, inputs: [list.txt], as_of: 2026-11-20T02:00Z}"),
		Input{}, new(Plan))
	require.NoError(t, err)
	result, err := Run(t.Context(), plan, Config{}, quiet)
	require.NoError(t, err)
	require.Equal(t, publish.Set{Name: "opted-out", Bitmap: result.Candidate.Sets[0].Bitmap, AsOfGiven: true,
		AsOf: time.Date(2026, 11, 20, 2, 0, 0, 0, time.UTC)}, result.Candidate.Sets[0])
	for set, want := range map[string]string{
		"{name: opted-out, inputs: [list.txt], as_of: 2026-11-20T02:00Z}": "as_of: requires publish: true",
		"{name: opted-out, publish: true, as_of: yesterday}":              `"yesterday": must be a time with a zone`,
		"{name: opted-out, publish: true, as_of: 2026-11-20}":             `"2026-11-20": must be a time with a zone`,
		"{name: opted-out, publish: true, as_of: 2999-01-01T00:00:00Z}":   `must not be in the future: the time is`,
	} {
		_, err := Load(file(set), Input{}, new(Plan))
		require.ErrorContains(t, err, want)
	}
}
