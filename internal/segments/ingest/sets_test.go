package ingest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/segments/segmentstest"
)

func setUsers(c *publish.Candidate) (names []string, users map[string][]uint32) {
	users = map[string][]uint32{}
	for _, s := range c.Sets {
		names = append(names, s.Name)
		users[s.Name] = s.Bitmap.IDs()
	}
	return names, users
}

func TestBuildSets(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	a, b := testFile(t, folder, "a.txt", "1\n2\n3\n"), testFile(t, folder, "b.txt", "3\n4\n")
	zones := testFile(t, folder, "zones.csv",
		"user_id,timezone\n1,Europe/Berlin\n4,Asia/Singapore\n3,Europe/Berlin\n1,Europe/Berlin\n")
	table := testFile(t, folder, "table.csv", "user_id,segment\n7,vip\n8,country/sg\n9,helper\n")
	p := &Plan{
		Segments: []Definition{{Name: "vip", Inputs: inputs(a)}, {Name: "new", Inputs: inputs(b)}},
		Sets: []Definition{
			{Name: "everyone", Publish: true, Union: []string{"vip", "new", "helper"}},
			{Name: "helper"},
			{Name: "country/sg", Publish: true, Inputs: inputs(b), Minus: []string{"tz/Europe/Berlin"}},
			{Name: "tz/Europe/Berlin", Publish: true, Inputs: inputs(testFile(t, folder, "berlin.txt", "70\n"))},
			{Name: "tz/Africa/Lagos", Publish: true},
		},
		Tables:     inputs(table),
		SetTables:  []SetTable{{Prefix: "tz/", Inputs: inputs(zones)}},
		Precedence: true,
	}
	result, err := Run(t.Context(), p, Config{}, quiet)
	require.NoError(t, err)
	require.Len(t, result.Overlaps, 1, "sets overlap with everything, which is nobody's business")
	names, users := setUsers(result.Candidate)
	require.Equal(t, []string{"everyone", "country/sg", "tz/Europe/Berlin", "tz/Africa/Lagos", "tz/Asia/Singapore"},
		names, "as given, then those of tables by name")
	require.Equal(t, map[string][]uint32{
		"everyone": {1, 2, 3, 4, 7, 9}, "country/sg": {4, 8}, "tz/Europe/Berlin": {1, 3, 70},
		"tz/Africa/Lagos": users["tz/Africa/Lagos"], "tz/Asia/Singapore": {4},
	}, users)
	require.Empty(t, users["tz/Africa/Lagos"])
}

// TestSetsOfABuildFileStayIngredients checks that a build file from before published sets keeps its
// meaning.
func TestSetsOfABuildFileStayIngredients(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	testFile(t, folder, "a.txt", "1\n2\n")
	testFile(t, folder, "b.txt", "2\n3\n")
	yaml := "segments: [{name: rest, union: [everyone], minus: [active]}]\nsets: [{name: everyone, inputs: [a.txt, " +
		"b.txt]}, {name: active, inputs: [b.txt]}]\n"
	plan, err := Load(testFile(t, folder, "build.yaml", yaml), Input{}, &Plan{})
	require.NoError(t, err)
	require.False(t, plan.Publishes("everyone"))
	result, err := Run(t.Context(), plan, Config{}, quiet)
	require.NoError(t, err)
	require.Empty(t, result.Candidate.Sets)
	require.Equal(t, map[string][]uint32{"rest": {1}}, users(result.Candidate))
	m, err := segments.NewManifest(segmentstest.Epoch, "test", "", result.Candidate.Describe(),
		result.Candidate.DescribeSets()...)
	require.NoError(t, err)
	require.Equal(t, segments.FormatVersion, m.FormatVersion)
}

func TestSetsThatCannotBe(t *testing.T) {
	t.Parallel()
	a := testFile(t, t.TempDir(), "a.txt", "1\n")
	vip := Definition{Name: "vip", Inputs: inputs(a)}
	set := func(name string) Definition { return Definition{Name: name, Publish: true, Inputs: inputs(a)} }
	var many []Definition
	for i := range segments.MaxSets + 1 {
		many = append(many, set(fmt.Sprintf("g/%d", i)))
	}
	for want, p := range map[string]*Plan{
		"segments are missing, so the default": {Sets: []Definition{set("a")}},
		`"Mars": must be a time zone`: {Segments: []Definition{vip},
			Sets: []Definition{set("tz/Mars")}},
		`set name "default" is reserved`: {Segments: []Definition{vip},
			Sets: []Definition{set("default")}},
		`segment or set "vip" is given twice`: {Segments: []Definition{vip},
			Sets: []Definition{set("vip")}},
		`segment or set "a" is given twice`: {Segments: []Definition{vip},
			Sets: []Definition{set("a"), set("a")}},
		"a generation (published version) must have at most 4096 sets, got 4097": {
			Segments: []Definition{vip}, Sets: many},
		`segment or set "a" must have input files, a union or an intersection`: {Segments: []Definition{vip},
			Sets: []Definition{{Name: "a", Publish: true}}, SetTables: []SetTable{{Prefix: "tz/", Inputs: inputs(a)}}},
		`segment name "country/sg" must be`: {Segments: []Definition{vip},
			Sets: []Definition{{Name: "country/sg", Inputs: inputs(a)}}},
		`"a" refers to itself: ["a" "a"]`: {Segments: []Definition{vip},
			Sets: []Definition{{Name: "a", Publish: true, Union: []string{"a"}}}},
		`set prefix "tz"`: {Segments: []Definition{vip}, SetTables: []SetTable{{Prefix: "tz"}}},
		`set prefixes "tz/" and "tz/Asia/" overlap: one must not be the beginning of the other`: {Segments: []Definition{vip},
			SetTables: []SetTable{{Prefix: "tz/"}, {Prefix: "tz/Asia/"}}},
	} {
		_, err := Run(t.Context(), p, Config{}, quiet)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(*PlanError))
	}
}

func TestAMissingFileNamesItsSet(t *testing.T) {
	t.Parallel()
	p := &Plan{Segments: []Definition{{Name: "vip", Inputs: inputs(testFile(t, t.TempDir(), "a.txt", "1\n"))}},
		Sets: []Definition{{Name: "opted-out", Publish: true, Inputs: inputs("missing.txt")}}}
	_, err := Run(t.Context(), p, Config{}, quiet)
	require.ErrorContains(t, err, `set "opted-out": missing.txt`)
}

// TestTooManySetsOfATable checks that the sets of tables and the declared sets together do not exceed
// the limit of a generation.
func TestTooManySetsOfATable(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var rows strings.Builder
	rows.WriteString("user_id,grp\n")
	for i := range segments.MaxSets {
		fmt.Fprintf(&rows, "%d,%d\n", i, i)
	}
	vip := Definition{Name: "vip", Inputs: inputs(testFile(t, folder, "a.txt", "1\n"))}
	p := &Plan{Segments: []Definition{vip},
		SetTables: []SetTable{{Prefix: "g/", Inputs: inputs(testFile(t, folder, "t.csv", rows.String()))}}}
	result, err := Run(t.Context(), p, Config{}, quiet)
	require.NoError(t, err)
	require.Len(t, result.Candidate.Sets, segments.MaxSets)
	require.True(t, slices.IsSortedFunc(result.Candidate.Sets,
		func(a, b publish.Set) int { return strings.Compare(a.Name, b.Name) }))
	p.Sets = []Definition{{Name: "one-more", Publish: true, Inputs: vip.Inputs}}
	_, err = Run(t.Context(), p, Config{}, quiet)
	require.ErrorContains(t, err, "at most 4096 sets, including the sets of tables, got 4097")
}
