package publish

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/testkit"
)

// published is a directory with generations of the segments vip and new and of the set opted-out.
type published struct {
	t         *testing.T
	dir       *objects.Directory
	root      string
	publisher *Publisher
}

func newPublished(t *testing.T) *published {
	root := t.TempDir()
	dir := objects.NewDirectory(root)
	return &published{t, dir, root, &Publisher{Location: dir, Clock: segmentstest.Stepping(),
		ToolVersion: "test 1"}}
}

func (p *published) publish(vip, fresh, out *bitmap.Bitmap) string {
	p.t.Helper()
	c := &Candidate{Names: []string{"vip", "new"}, Bitmaps: []*bitmap.Bitmap{vip, fresh}}
	if out != nil {
		c.Sets = []Set{{Name: "opted-out", Bitmap: out}}
	}
	base, err := ReadLiveState(p.t.Context(), p.dir)
	require.NoError(p.t, err)
	m, err := p.publisher.Publish(p.t.Context(), c, base, "")
	require.NoError(p.t, err)
	return m.Manifest.Generation
}

func TestGenerationsAreListed(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	clock := testkit.NewClockAt(segmentstest.Epoch)
	h := New(p.dir, clock.Now)
	list, _, err := h.List(t.Context())
	require.NoError(t, err)
	require.Empty(t, list)
	first := p.publish(bitmap.Of(1), bitmap.Of(2), nil)
	second := p.publish(bitmap.Of(1, 2), bitmap.Of(3), bitmap.Of(9))
	clock.Advance(listAge)
	list, more, err := h.List(t.Context())
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, []string{second, first}, []string{list[0].Generation, list[1].Generation})
	require.True(t, list[0].Live)
	require.Equal(t, "test 1", list[0].Manifest.ToolVersion)

	p.publish(bitmap.Of(4), bitmap.Of(3), nil)
	again, _, err := h.List(t.Context())
	require.NoError(t, err)
	require.Len(t, again, 2, "told again for a while")
	clock.Advance(listAge)
	again, _, err = h.List(t.Context())
	require.NoError(t, err)
	require.Len(t, again, 3)
}

func TestChangesAreOfUsers(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	first := p.publish(bitmap.Of(1, 2, 3), bitmap.Of(10, 11), bitmap.Of(9))
	second := p.publish(bitmap.Of(1, 2, 10, 20), bitmap.Of(11), nil)
	h := New(p.dir, time.Now)
	c, err := h.Changes(t.Context(), first, second)
	require.NoError(t, err)
	require.True(t, c.Exact)
	require.Equal(t, Change{
		Segment: "vip", State: changed, Before: 3, After: 4, Added: 2, Removed: 1,
		MovedFrom: []moved{{From: "new", Users: 1}}, Percent: 100,
	}, c.Segments[0])
	require.Equal(t, Vanishes, c.Sets[0].State)
	require.EqualValues(t, 1, c.NoSegment.Fall)
	require.EqualValues(t, 1, c.NoSegment.Rise)
	require.NoError(t, os.RemoveAll(filepath.Join(p.root, "bitmaps")))
	again, err := h.Changes(t.Context(), first, second)
	require.NoError(t, err)
	require.Same(t, c, again, "a comparison is kept")
}

func TestSizesOfWhatIsTooLarge(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	first := p.publish(bitmap.Of(1, 2, 3), bitmap.Of(10, 11), bitmap.Of(9))
	second := p.publish(bitmap.Of(1, 2, 10, 20), bitmap.Of(10, 11), nil)
	third := p.publish(bitmap.Of(), bitmap.Of(10, 11), bitmap.Of(9))
	h := New(p.dir, time.Now)
	h.mostBytes = 10
	c, err := h.Changes(t.Context(), first, second)
	require.NoError(t, err)
	require.False(t, c.Exact)
	require.Nil(t, c.NoSegment)
	require.Equal(t, []Change{
		{Segment: "vip", State: changed, Before: 3, After: 4}, {Segment: "new", State: Same, Before: 2,
			After: 2},
	}, c.Segments)
	require.Equal(t, []Change{{Set: "opted-out", State: Vanishes, Before: 1}}, c.Sets)
	c, err = h.Changes(t.Context(), second, third)
	require.NoError(t, err)
	require.Equal(t, empties, c.Segments[0].State)
	require.Equal(t, appears, c.Sets[0].State)
}

func TestWhatCannotBeCompared(t *testing.T) {
	t.Parallel()
	p := newPublished(t)
	first := p.publish(bitmap.Of(1), bitmap.Of(2), nil)
	h := New(p.dir, time.Now)
	for _, name := range []string{"", "../../etc/passwd", "20200101T000000.000Z-00000000"} {
		_, err := h.Changes(t.Context(), name, first)
		require.ErrorIs(t, err, objects.ErrNotFound, name)
	}
	second := p.publish(bitmap.Of(5), bitmap.Of(2), nil)
	m, err := segments.ReadManifest(t.Context(), p.dir, second)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(p.root, m.Segments[0].Key), []byte("damaged"), 0o600))
	_, err = h.Changes(t.Context(), first, second)
	require.Error(t, err)
	require.False(t, errors.Is(err, objects.ErrNotFound))

	require.NoError(t, h.take(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = h.Changes(ctx, first, second)
	require.ErrorIs(t, err, context.Canceled, "who waits for a turn ends with its context")
}

func TestOldComparisonsAreLetGo(t *testing.T) {
	t.Parallel()
	h := New(objects.NewDirectory(t.TempDir()), time.Now)
	for i := range 2 * kept {
		h.keep(pair{from: segments.TimeName(segmentstest.Epoch.Add(time.Duration(i) * time.Hour))}, &Changes{})
	}
	require.Len(t, h.compared, kept)
	require.Len(t, h.order, kept)
}
