package audience_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audience"
	"capper/internal/bitmap"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/share"
)

// ten returns a generation with the users 0 to 9, of whom 0 to 4 are in a segment.
func ten(t testing.TB) *segments.Snapshot {
	t.Helper()
	g := segmentstest.Generation(t, []string{"low", "rest"}, bitmap.Range(0, 5), bitmap.Range(0, 10))
	return g.Snapshot()
}

func TestACursorIsRefusedByAnotherQuery(t *testing.T) {
	t.Parallel()
	g, s := audience.NewEngine(0), ten(t)
	a := bind(t, g, "low | rest", s)
	sample, err := share.New(share.Sample, 99.99, "a")
	require.NoError(t, err)
	other, err := share.New(share.Sample, 99.99, "b")
	require.NoError(t, err)
	p, err := a.Page(t.Context(), audience.Query{Sample: &sample, Part: audience.Part{Of: 2}}, 2)
	require.NoError(t, err)
	require.NotNil(t, p.Next)
	require.Equal(t, s.Generation(), p.Next.Generation)
	for name, c := range map[string]struct {
		text  string
		query audience.Query
		err   error
	}{
		"the same":               {"low | rest", audience.Query{Sample: &sample, Part: audience.Part{Of: 2}}, nil},
		"written in another way": {"((low)|rest)", audience.Query{Sample: &sample, Part: audience.Part{Of: 2}}, nil},
		"another expression": {"low & rest", audience.Query{Sample: &sample, Part: audience.Part{Of: 2}},
			audience.ErrOtherQuery},
		"another salt": {"low | rest", audience.Query{Sample: &other, Part: audience.Part{Of: 2}},
			audience.ErrOtherQuery},
		"no sample": {"low | rest", audience.Query{Part: audience.Part{Of: 2}}, audience.ErrOtherQuery},
		"another part": {"low | rest", audience.Query{Sample: &sample, Part: audience.Part{Of: 2, Index: 1}},
			audience.ErrOtherQuery},
		"no part": {"low | rest", audience.Query{Sample: &sample}, audience.ErrOtherQuery},
	} {
		c.query.Cursor = p.Next
		_, err := bind(t, g, c.text, s).Page(t.Context(), c.query, 2)
		require.ErrorIs(t, err, c.err, name)
		if c.err == nil {
			require.NoError(t, err, name)
		}
	}
	later := small(t, []string{"low", "rest"}, nil)
	if later.Generation() != s.Generation() {
		_, err = bind(t, g, "low | rest", later).Page(t.Context(), audience.Query{Cursor: p.Next}, 2)
		require.ErrorIs(t, err, audience.ErrOtherQuery, "another generation")
	}
}

func TestTextsThatAreNoCursor(t *testing.T) {
	t.Parallel()
	p, err := bind(t, audience.NewEngine(0), "all", ten(t)).Page(t.Context(), audience.Query{}, 3)
	require.NoError(t, err)
	text := p.Next.String()
	back, err := audience.ParseCursor(text)
	require.NoError(t, err)
	require.Equal(t, p.Next, back)
	for i := range len(text) {
		for _, c := range []byte("A_\n=") {
			if text[i] != c {
				_, err := audience.ParseCursor(text[:i] + string(c) + text[i+1:])
				require.EqualError(t, err, "the cursor was not returned by an earlier call", "%d %q", i, c)
			}
		}
		_, err := audience.ParseCursor(text[:i])
		require.Error(t, err)
	}
	for _, bad := range []string{text + "A", text + "\n", "\n" + text, text + "=", " ",
		base64.RawURLEncoding.EncodeToString(make([]byte, 5_000))} {
		_, err := audience.ParseCursor(bad)
		require.EqualError(t, err, "the cursor was not returned by an earlier call")
	}
}

func FuzzParseCursor(f *testing.F) {
	p, err := bind(f, audience.NewEngine(0), "all", ten(f)).Page(f.Context(), audience.Query{}, 3)
	require.NoError(f, err)
	f.Add(p.Next.String())
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := audience.ParseCursor(text); err == nil {
			require.Equal(t, text, c.String())
		}
	})
}
