package publish

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/dictionary"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// ranked returns n UUIDs in the order of their images, so that equal positions in two lists are equal numbers.
func ranked(t *testing.T, scheme *ids.Scheme, first, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("018f3c4e-7a1b-7c3d-9e5f-%012x", first+i))
	}
	slices.SortFunc(list, func(a, b string) int {
		images := segmentstest.Images(t, scheme, a, b)
		return cmp.Compare(images[0], images[1])
	})
	return list
}

// numbered returns a candidate of the segment vip and of a set, without a way back.
func numbered(t *testing.T, scheme *ids.Scheme, vip []string, set string, users []string) *Candidate {
	d, bitmaps := segmentstest.Numbered(t, scheme, vip, users)
	return &Candidate{Names: []string{"vip"}, Bitmaps: bitmaps[:1], Scheme: scheme, Dictionary: d,
		Sets: []Set{{Name: set, Bitmap: bitmaps[1]}}}
}

// withNames gives a candidate of UUIDs the way back from its users to their ids.
func withNames(t *testing.T, c *Candidate, list ...string) *Candidate {
	rests := make([]uint64, c.Dictionary.Len())
	for _, id := range list {
		image, rest, err := c.Scheme.ParseRest([]byte(id))
		require.NoError(t, err)
		number, ok := c.Dictionary.Number(image)
		require.True(t, ok)
		rests[number] = rest
	}
	var file strings.Builder
	w, err := dictionary.NewRestWriter(&file, uint32(len(rests)))
	require.NoError(t, err)
	for _, rest := range rests {
		require.NoError(t, w.Add(rest))
	}
	require.NoError(t, w.Close())
	c.Back, err = segments.NewBack(ids.UUID, []byte(file.String()))
	require.NoError(t, err)
	return c
}

func goLiveWith(t *testing.T, p *Publisher, c *Candidate) *segments.Manifest {
	t.Helper()
	session := &Session{Numbering: c.Dictionary}
	base, err := session.ReadLive(t.Context(), p.Location)
	require.NoError(t, err)
	done, err := p.Publish(t.Context(), c, base, "")
	require.NoError(t, err)
	return done.Manifest
}

func uuidPublisher(t *testing.T) (*Publisher, string) {
	root := t.TempDir()
	return &Publisher{Location: objects.NewDirectory(root), Clock: segmentstest.Stepping(), ToolVersion: "test"}, root
}

// TestEqualBitmapsAreOtherUsersInAnotherGeneration compares generations whose bitmaps are equal byte by byte, although
// they have no user in common.
func TestEqualBitmapsAreOtherUsersInAnotherGeneration(t *testing.T) {
	t.Parallel()
	p, root := uuidPublisher(t)
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	a, b := ranked(t, scheme, 0, 4), ranked(t, scheme, 4, 4)
	from := goLiveWith(t, p, numbered(t, scheme, a[:2], "out", a[2:]))
	to := goLiveWith(t, p, numbered(t, scheme, b[:2], "out", b[2:]))
	require.Equal(t, from.Segments[0].SHA256, to.Segments[0].SHA256)
	require.Equal(t, from.Sets[0].SHA256, to.Sets[0].SHA256)

	h := New(p.Location, p.Clock)
	for _, exact := range []bool{true, false} {
		if !exact {
			h = New(p.Location, p.Clock)
			h.mostBytes = 1
		}
		changes, err := h.Changes(t.Context(), from.Generation, to.Generation)
		require.NoError(t, err)
		require.Equal(t, exact, changes.Exact)
		require.Equal(t, changed, changes.Segments[0].State)
		require.Equal(t, changed, changes.Sets[0].State)
		changes, err = h.Changes(t.Context(), to.Generation, to.Generation)
		require.NoError(t, err)
		require.Equal(t, Same, changes.Segments[0].State)
		require.Equal(t, Same, changes.Sets[0].State)
	}

	t.Run("over a damaged generation", func(t *testing.T) {
		require.NoError(t, os.Remove(filepath.Join(root, to.IDs.Dictionary[0].Key)))
		base, err := ReadLiveState(t.Context(), p.Location)
		require.NoError(t, err)
		require.Error(t, base.Fault)
		base.manifest.Accepted = []segments.Accepted{{Set: "out"}}
		lost := func(list []string) bool {
			return numbered(t, scheme, list[:2], "out", list[2:]).lostUsers(base)["out"]
		}
		require.False(t, lost(b), "the users stay")
		require.True(t, lost(a), "all users have left, although the bitmap is the same")
	})
}

func TestTheDictionaryCountsInTheBoundOfAComparison(t *testing.T) {
	t.Parallel()
	p, root := uuidPublisher(t)
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	list := ranked(t, scheme, 0, 5000)
	from := goLiveWith(t, p, withNames(t, numbered(t, scheme, list[:2], "out", list[2:]), list...))
	to := goLiveWith(t, p, withNames(t, numbered(t, scheme, list[:3], "out", list[3:]), list...))
	for _, o := range to.Objects() {
		if segments.IsBackKey(o.Key) { // no comparison needs it
			require.NoError(t, os.Remove(filepath.Join(root, o.Key)))
		}
	}
	h := New(p.Location, p.Clock)
	bitmaps := int64(0)
	for _, m := range []*segments.Manifest{from, to} {
		for _, s := range m.Entries() {
			bitmaps += s.SizeBytes
		}
	}
	h.mostBytes = bitmaps + from.IDs.Dictionary[0].SizeBytes
	changes, err := h.Changes(t.Context(), from.Generation, to.Generation)
	require.NoError(t, err)
	require.False(t, changes.Exact)
	h = New(p.Location, p.Clock)
	h.mostBytes = bitmaps + 2*from.IDs.Dictionary[0].SizeBytes
	changes, err = h.Changes(t.Context(), from.Generation, to.Generation)
	require.NoError(t, err)
	require.True(t, changes.Exact)
	require.EqualValues(t, 1, changes.Segments[0].Added)
	require.EqualValues(t, 1, changes.Sets[0].Removed)
}

// readCounter counts the reads of objects by key.
type readCounter struct {
	objects.Location
	mu    sync.Mutex
	reads map[string]int
}

func (c *readCounter) Read(ctx context.Context, key string, most int64) ([]byte, error) {
	c.mu.Lock()
	c.reads[key]++
	c.mu.Unlock()
	return c.Location.Read(ctx, key, most)
}

// TestUsersWhoLeftHaveNames checks the ids that a comparison shows for users who are only in the earlier generation,
// and that it reads the way back only for these ids.
func TestUsersWhoLeftHaveNames(t *testing.T) {
	t.Parallel()
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	list := ranked(t, scheme, 0, 6)
	gone := list[5]
	next := func() *Candidate { return withNames(t, numbered(t, scheme, list[:2], "out", list[2:5]), list[:5]...) }
	for _, names := range []bool{true, false} {
		p, _ := uuidPublisher(t)
		was := numbered(t, scheme, list[:2], "out", list[2:])
		want := fmt.Sprintf("image:%016x", segmentstest.Images(t, scheme, gone)[0])
		if names {
			withNames(t, was, list...)
			want = gone
		}
		m := goLiveWith(t, p, was)
		at := &readCounter{Location: p.Location, reads: map[string]int{}}
		c := next()
		session := &Session{Numbering: c.Dictionary}
		for range 2 {
			base, err := session.ReadLive(t.Context(), at)
			require.NoError(t, err)
			require.EqualValues(t, 1, c.Compare(base.Generation)[0].Before-1)
		}
		require.Len(t, m.Objects(), map[bool]int{true: 2, false: 1}[names])
		require.Equal(t, 1, at.reads[m.Objects()[0].Key], "the dictionary is read once")
		if names {
			require.Zero(t, at.reads[m.Objects()[1].Key], "nobody asked for a name")
		}
		base, err := session.ReadLive(t.Context(), at)
		require.NoError(t, err)
		require.Equal(t, []string{want}, c.CompareSets(base.Generation)[0].LeftTexts)
	}
}

// TestAnAcceptedLossOfZonesOfUUIDs checks that an acceptance by name covers users who lose their time zone.
func TestAnAcceptedLossOfZonesOfUUIDs(t *testing.T) {
	t.Parallel()
	p, _ := uuidPublisher(t)
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	list := ranked(t, scheme, 0, 100)
	const zone = "tz/Asia/Singapore"
	live := goLiveWith(t, p, numbered(t, scheme, list, zone, list))
	for accept, refused := range map[bool]bool{true: false, false: true} {
		c := numbered(t, scheme, list[1:], zone, list[90:])
		base, err := (&Session{Numbering: c.Dictionary}).ReadLive(t.Context(), p.Location)
		require.NoError(t, err)
		if accept {
			c.Accepted = []segments.Accepted{{Set: zone, FromSHA256: live.Users(&live.Sets[0].Segment),
				ToSHA256: c.users(zone), Before: 100, Removed: 90, Change: "-90%", Reason: "because"}}
		}
		require.Equal(t, refused, c.LostZones(base.Generation) != nil, accept)
	}
}
