package audience_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audience"
	"capper/internal/bitmap"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// small returns a generation whose segments and sets all hold only user 1.
func small(t testing.TB, segmentNames, setNames []string) *segments.Snapshot {
	t.Helper()
	g := &segments.Generation{}
	var list []segments.Segment
	for _, name := range segmentNames {
		g.Bitmaps = append(g.Bitmaps, bitmap.Of(1))
		list = append(list, segments.Describe(name, bitmap.Of(1)))
	}
	var sets []segments.Set
	for _, name := range setNames {
		g.Sets = append(g.Sets, bitmap.Of(1))
		sets = append(sets, segments.Set{Segment: segments.Describe(name, bitmap.Of(1))})
	}
	m, err := segments.NewManifest(segmentstest.Epoch, "test", "", list, sets...)
	require.NoError(t, err)
	g.Manifest = m
	return g.Snapshot()
}

func TestNamesThatAGenerationDoesNotHave(t *testing.T) {
	t.Parallel()
	s := small(t, []string{"active", "vip", "a-b"}, []string{"country/my", "opted-out"})
	named, err := audience.NewNamed(map[string]string{"engaged": "active | opned", "typo": "engaged", "fine": "active"})
	require.NoError(t, err)
	in := "generation " + s.Generation() + " has no segment or set "
	for text, want := range map[string]string{
		"actve":                 `column 1: ` + in + `"actve"; the nearest is "active"`,
		"vip & contry/my":       `column 7: ` + in + `"contry/my"; the nearest is "country/my"`,
		"vip | nothing-like-it": `column 7: ` + in + `"nothing-like-it"`,
		"al":                    `column 1: ` + in + `"al"; the nearest is "all"`,
		"vip & active-vip": `column 7: ` + in +
			`"active-vip": a name may contain "-", so put spaces around the operator: active - vip`,
		"vip-opted-out-a-b": `column 1: ` + in +
			`"vip-opted-out-a-b": a name may contain "-", so put spaces around the operator: vip - opted-out - a-b`,
		"active-engaged": `column 1: ` + in +
			`"active-engaged": a name may contain "-", so put spaces around the operator: active - engaged`,
		"active-all":    `column 1: ` + in + `"active-all": a name may contain "-", so put spaces around the operator: active - all`,
		"engagd":        `column 1: ` + in + `"engagd"; the nearest is "engaged"`,
		"active-":       `column 1: ` + in + `"active-"; the nearest is "active"`,
		"vip | engaged": `in engaged of the configuration: ` + in + `"opned"`,
		"typo":          `in engaged of the configuration: ` + in + `"opned"`,
	} {
		e, err := audience.Parse(text)
		require.NoError(t, err, text)
		e, err = e.With(named)
		require.NoError(t, err, text)
		_, err = audience.NewEngine(0).Bind(e, s)
		var unknown *audience.UnknownError
		require.ErrorAs(t, err, &unknown, text)
		require.EqualError(t, err, want)
	}
}

func TestNamesWithTwoMeaningsAreRefused(t *testing.T) {
	t.Parallel()
	s := small(t, []string{"all", "active"}, []string{"opened"})
	named, err := audience.NewNamed(map[string]string{"opened": "active", "above": "opened"})
	require.NoError(t, err)
	also := " also the name of a segment or set of generation " + s.Generation()
	for text, want := range map[string]string{
		"active - all":    `column 10: "all" is a reserved name of expressions and` + also,
		"active | opened": `column 10: "opened" is an expression of the configuration and` + also,
		"above":           `"opened" is an expression of the configuration and` + also,
	} {
		e, err := audience.Parse(text)
		require.NoError(t, err)
		e, err = e.With(named)
		require.NoError(t, err)
		_, err = audience.NewEngine(0).Bind(e, s)
		var ambiguous *audience.AmbiguousError
		require.ErrorAs(t, err, &ambiguous, text)
		require.EqualError(t, err, want)
	}
	require.NotNil(t, bind(t, audience.NewEngine(0), "active - default", s), "what nobody names does not matter")
}
