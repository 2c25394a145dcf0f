package ingest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/segments/publish"
)

func testFile(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func quiet(string) {}

func inputs(paths ...string) []Input {
	var list []Input
	for _, p := range paths {
		list = append(list, Input{Path: p})
	}
	return list
}

func users(c *publish.Candidate) map[string][]uint32 {
	found := map[string][]uint32{}
	for i, name := range c.Names {
		found[name] = []uint32{}
		for id := range c.Bitmaps[i].All() {
			found[name] = append(found[name], id)
		}
	}
	return found
}

// TestGoldenBuild checks that the same users give the same bytes, whatever the order of files and
// rows, the formats, and the number of workers and cores. Fixed hashes compare the bytes with those of
// earlier versions.
func TestGoldenBuild(t *testing.T) {
	folder := t.TempDir()
	r := rand.New(rand.NewPCG(1, 2))
	var ids []uint32
	for range 50_000 {
		ids = append(ids, r.Uint32N(1<<20)) // bitmaps
	}
	for i := range uint32(70_000) {
		ids = append(ids, 1<<24+i) // runs
	}
	for range 2_000 {
		ids = append(ids, r.Uint32()) // arrays
	}
	parts := func(order []uint32, ext, format string) []string {
		var paths []string
		for i := range 5 {
			var b strings.Builder
			for k := i; k < len(order); k += 5 {
				fmt.Fprintf(&b, format, order[k])
			}
			paths = append(paths, testFile(t, folder, fmt.Sprintf("%d-%d.%s", order[0], i, ext), b.String()))
		}
		return paths
	}
	first := parts(ids, "txt", "%d\n")
	shuffled := append([]uint32(nil), ids...)
	r.Shuffle(len(shuffled), func(i, k int) { shuffled[i], shuffled[k] = shuffled[k], shuffled[i] })
	second := parts(shuffled, "csv", "%d,\"x\"\r\n")
	second[0], second[3] = second[3], second[0]

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, cores := range []int{1, 2, 4} {
		runtime.GOMAXPROCS(cores)
		for _, paths := range [][]string{first, second} {
			plan := &Plan{Segments: []Definition{
				{Name: "all", Inputs: inputs(paths...)},
				{Name: "rest", Inputs: inputs(first[:2]...), Minus: []string{"all"}},
				{Name: "few", Inputs: inputs(first[4])},
			}, Precedence: true, Order: []string{"few", "all", "rest"}}
			result, err := Run(t.Context(), plan, Config{Workers: cores}, quiet)
			require.NoError(t, err)
			var got []string
			for _, s := range result.Candidate.Describe() {
				got = append(got, fmt.Sprintf("%s %d %s", s.Name, s.Cardinality, s.SHA256[:16]))
			}
			require.Equal(t, []string{"few 24363 ad96ebdaf87195a8", "all 96481 e4cae9db66c1ced6",
				"rest 0 0f483b868cd831d0"}, got)
		}
	}
}

func TestSetOperations(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	testFile(t, folder, "everyone.txt", "1\n2\n3\n4\n5\n6\n")
	testFile(t, folder, "active.txt", "1\n2\n3\n")
	testFile(t, folder, "reachable.txt", "2\n3\n4\n5\n9\n")
	plan, err := parse([]byte(`
segments:
  - {name: active, inputs: [active.txt], intersect: [reachable]}
  - {name: dormant, union: [everyone], minus: [active, lapsed]}
  - {name: lapsed, intersect: [everyone, unreachable]}
  - {name: young, inputs: [active.txt], union: [reachable], intersect: [reachable, everyone], minus: [active]}
sets:
  - {name: unreachable, union: [everyone], minus: [reachable]}
  - {name: everyone, inputs: [everyone.txt]}
  - {name: reachable, inputs: [reachable.txt]}
`), filepath.Join(folder, "segments.yaml"), Input{}, &Plan{})
	require.NoError(t, err)
	result, err := Run(t.Context(), plan, Config{}, quiet)
	var overlap *OverlapError
	require.ErrorAs(t, err, &overlap)
	require.Equal(t, []publish.Overlap{{A: "dormant", B: "young", Users: 2, Samples: []uint32{4, 5}}}, overlap.Overlaps)
	require.Equal(t, map[string][]uint32{
		"active": {2, 3}, "dormant": {4, 5}, "lapsed": {1, 6}, "young": {4, 5},
	}, users(result.Candidate))

	plan.Precedence = true
	result, err = Run(t.Context(), plan, Config{}, quiet)
	require.NoError(t, err)
	require.Len(t, result.Overlaps, 1, "reported all the same")
	require.Equal(t, map[string][]uint32{
		"active": {2, 3}, "dormant": {4, 5}, "lapsed": {1, 6}, "young": {},
	}, users(result.Candidate))
}

func TestTablesJoinTheInputs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	table := testFile(t, folder, "table.csv", "user_id,segment\n1,a\n2,b\n3,c\n")
	more := testFile(t, folder, "more.txt", "7\n")
	plan := &Plan{Tables: inputs(table), Segments: []Definition{{Name: "b", Inputs: inputs(more)}, {Name: "a"},
		{Name: "c"}, {Name: "d"}}}
	result, err := Run(t.Context(), plan, Config{}, quiet)
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a", "c", "d"}, result.Candidate.Names)
	require.Equal(t, map[string][]uint32{"a": {1}, "b": {2, 7}, "c": {3}, "d": {}}, users(result.Candidate))

	result, err = Run(t.Context(), &Plan{Tables: inputs(table), Order: []string{"c", "b", "a"}}, Config{}, quiet)
	require.NoError(t, err)
	require.Equal(t, []string{"c", "b", "a"}, result.Candidate.Names)

	_, err = Run(t.Context(), &Plan{Tables: inputs(table), Segments: []Definition{{Name: "a"}}}, Config{}, quiet)
	var bad *BadRowsError
	require.ErrorAs(t, err, &bad)
	require.EqualValues(t, 2, bad.Count)
}

func TestPlansThatMakeNoSense(t *testing.T) {
	t.Parallel()
	in := inputs("x.txt")
	var many []Definition
	for i := range 256 {
		many = append(many, Definition{Name: fmt.Sprintf("s%d", i), Inputs: in})
	}
	for want, plan := range map[string]*Plan{
		"nothing to build": {},
		`"a" is given twice`: {Segments: []Definition{{Name: "a", Inputs: in}},
			Sets: []Definition{{Name: "a", Inputs: in}}},
		`"a" must have input files, a union or an intersection`: {Segments: []Definition{{Name: "a"}}},
		`"a" refers to "b"`: {Segments: []Definition{{Name: "a", Inputs: in,
			Minus: []string{"b"}}}},
		`"a" refers to itself`: {Segments: []Definition{{Name: "a", Inputs: in,
			Minus: []string{"a"}}}},
		"at most 255 segments, got 256": {Segments: many},
		`segment name "-x"`:             {Segments: []Definition{{Name: "-x", Inputs: in}}},
		"a table needs the list":        {Tables: in},
		"must name every segment exactly once": {Segments: []Definition{{Name: "a", Inputs: in}},
			Order: []string{"a", "a"}},
		`segment name "` + strings.Repeat("y", 65): {Segments: []Definition{{Name: strings.Repeat("y", 65),
			Inputs: in}}},
	} {
		_, err := Run(t.Context(), plan, Config{}, quiet)
		var fault *PlanError
		require.ErrorAs(t, err, &fault, want)
		require.ErrorContains(t, err, want)
	}
}

func TestBuildFileSaysWhetherLastLinesEnd(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	testFile(t, folder, "a.txt", strings.Repeat("12\n", 6000)+"34")
	for text, want := range map[string]string{
		"segments: [{name: a, inputs: [a.txt]}]":                                      "the last line does not end",
		"segments: [{name: a, inputs: [{path: a.txt, final_newline: optional}]}]":     "",
		"segments: [{name: a, inputs: [a.txt]}]\ndefaults: {final_newline: optional}": "",
		"segments: [{name: a, inputs: [{path: a.txt, final_newline: no}]}]": `segments[0].inputs[0].final_newline: ` +
			`must be 'required' or 'optional', got "no"`,
		"segments: [{name: a, inputs: [a.txt]}]\ndefaults: {final_newline: sometimes}": "defaults.final_newline: " +
			"must be 'required' or 'optional'",
	} {
		plan, err := Load(testFile(t, folder, "build.yaml", text), Input{}, new(Plan))
		if err == nil {
			_, err = Run(t.Context(), plan, Config{}, quiet)
		}
		if want == "" {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, want, text)
		}
	}
}
