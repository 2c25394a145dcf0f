package publish

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// proposed returns a proposal over the live generation.
func proposed(t *testing.T, at objects.Source, b *bitmap.Bitmap) *Proposal {
	t.Helper()
	base, err := ReadLiveState(t.Context(), at)
	require.NoError(t, err)
	return &Proposal{Candidate: &Candidate{Names: []string{"vip"}, Bitmaps: []*bitmap.Bitmap{b}}, Base: base}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	at := objects.NewDirectory(t.TempDir())
	now := segmentstest.Epoch
	bounds := Bounds{MaxChange: UsualMaxChange, MaxUnassigned: pointerTo(40.0)}
	judge := func(p *Proposal) *Findings {
		found, err := bounds.Judge(t.Context(), at, p, now)
		require.NoError(t, err)
		return found
	}
	goLive := func(b *bitmap.Bitmap) {
		p := proposed(t, at, b)
		publisher := Publisher{Location: at, ToolVersion: "test", Clock: func() time.Time { return now }}
		_, err := publisher.Publish(t.Context(), p.Candidate, p.Base, "")
		require.NoError(t, err)
	}

	first := proposed(t, at, bitmap.Of())
	first.EmptyFiles, first.BadRows, first.Shortfalls = []string{"a.txt"}, 3, []string{"a.txt is old"}
	found := judge(first)
	require.Equal(t, []string{
		"a.txt is old",
		`in a first publish segment "vip" has no users: use --allow-first empty-segments if this is intended`,
		"in a first publish a.txt has no valid row: use --allow-first empty-files if this is intended",
		"in a first publish 3 rows are bad: use --allow-first bad-rows if this is intended",
	}, found.Refusals)
	require.Nil(t, found.NoSegment, "there is nothing to compare with")
	require.EqualError(t, &RefusedError{Refusals: found.Refusals}, "not published, for 4 reasons:\n  "+
		strings.Join(found.Refusals, "\n  "))
	bounds.AllowFirst = Flaws
	require.Equal(t, []string{"a.txt is old"}, judge(first).Refusals)

	goLive(bitmap.Range(0, 100))
	now = now.Add(week)
	goLive(bitmap.Range(0, 81))
	now = now.Add(time.Hour)
	found = judge(proposed(t, at, bitmap.Range(0, 70)))
	require.Empty(t, found.Refusals, "14 % since the last publish, 30 % since a week ago")
	require.EqualValues(t, 30, found.Drift.Changes[0].Removed)
	require.Nil(t, judge(proposed(t, at, bitmap.Range(0, 81))).Drift, "nothing changes")
	bounds.MaxWeekChange = pointerTo(29.0)
	require.Len(t, judge(proposed(t, at, bitmap.Range(0, 70))).Refusals, 1)

	live, err := segments.ReadLiveManifest(t.Context(), at)
	require.NoError(t, err)
	require.NoError(t, at.Delete(t.Context(), segments.CurrentKey))
	found = judge(proposed(t, at, bitmap.Range(0, 81)))
	require.Equal(t, live.Generation, found.ComparedWith, "where none is live it is the newest that counts")
	require.NoError(t, at.Delete(t.Context(), live.Segments[0].Key))
	found = judge(proposed(t, at, bitmap.Range(0, 81)))
	require.Len(t, found.Refusals, 1)
	require.Contains(t, found.Refusals[0],
		"the newest generation cannot be read, so the guard cannot compare the users: ")
}
