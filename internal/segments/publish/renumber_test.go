package publish

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/objects/objectstest"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
)

// uuidGeneration returns a candidate with a way back: the segment vip and the sets opted-out and paused.
func uuidGeneration(t *testing.T, scheme *ids.Scheme, vip, out, paused []string) *Candidate {
	d, bitmaps := segmentstest.Numbered(t, scheme, vip, out, paused)
	return &Candidate{Names: []string{"vip"}, Bitmaps: bitmaps[:1], Scheme: scheme, Dictionary: d,
		Back: segmentstest.Back(t, scheme, d, vip, out, paused),
		Sets: []Set{{Name: "opted-out", Bitmap: bitmaps[1], AsOf: segmentstest.Epoch.Add(-2 * time.Hour),
			Growth: Growth{Said: true, OnlyGrows: true}}, {Name: "paused", Bitmap: bitmaps[2]}}}
}

// uuidAmend returns the candidate of an amend of opted-out.
func uuidAmend(t *testing.T, scheme *ids.Scheme, users []string) *Candidate {
	d, bitmaps := segmentstest.Numbered(t, scheme, users)
	return &Candidate{Scheme: scheme, Dictionary: d, Back: segmentstest.Back(t, scheme, d, users),
		Sets: []Set{{Name: "opted-out", Bitmap: bitmaps[0], AsOf: segmentstest.Epoch.Add(-time.Hour)}}}
}

// amendOver publishes an amend whose users join the live ones.
func amendOver(t *testing.T, at objects.Location, c *Candidate) (*Published, error) {
	t.Helper()
	base, err := (&Session{}).ReadForAmend(t.Context(), at, c)
	require.NoError(t, err)
	c, base, err = c.Over(base)
	require.NoError(t, err)
	amended, refusals := c.Amended(base, true, segmentstest.Epoch)
	require.Empty(t, refusals)
	return (&Publisher{Location: at, ToolVersion: "test"}).Publish(t.Context(), amended, base, "")
}

// namesOf returns the ids of a bitmap's users, sorted.
func namesOf(t *testing.T, g *segments.Generation, b *bitmap.Bitmap) (list []string) {
	for number := range b.All() {
		text, err := g.ID(nil, number)
		require.NoError(t, err)
		list = append(list, string(text))
	}
	slices.Sort(list)
	return list
}

func sorted(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}

// TestAnAmendOfKnownIDsTouchesItsSetAlone checks that such an amend reads the dictionary, but neither the way back nor
// another bitmap, and stores one bitmap.
func TestAnAmendOfKnownIDsTouchesItsSetAlone(t *testing.T) {
	t.Parallel()
	objectstest.OnEveryLocation(t, func(t *testing.T, _ string, at objects.Location) {
		scheme := ids.New(ids.UUID, segmentstest.Key(1))
		list := ranked(t, scheme, 0, 9)
		p := &Publisher{Location: at, Clock: segmentstest.Stepping(), ToolVersion: "test"}
		before := goLiveWith(t, p, uuidGeneration(t, scheme, list[:6], list[6:7], list[7:]))
		var calls []string
		watched := &hooked{Location: at, before: func(call, key string) {
			of := strings.HasPrefix(key, segments.BitmapsPrefix) || strings.HasPrefix(key, segments.DictionariesPrefix)
			if of && call != "list" {
				calls = append(calls, call+" "+key)
			}
		}}
		done, err := amendOver(t, watched, uuidAmend(t, scheme, list[4:6]))
		require.NoError(t, err)
		require.Len(t, done.Uploaded, 1)
		slices.Sort(calls)
		require.Equal(t, []string{"overwrite " + done.Uploaded[0], "put " + done.Uploaded[0], "put " + done.Uploaded[0],
			"read " + before.Sets[0].Key, "read " + before.IDs.Dictionary[0].Key}, calls)
		g := live(t, at)
		require.Equal(t, before.IDs, g.Manifest.IDs)
		require.Equal(t, before.Segments, g.Manifest.Segments)
		require.Equal(t, before.Sets[1], g.Manifest.Sets[1])
		require.Equal(t, sorted(list[4:7]), namesOf(t, g, g.Sets[0]))

		again, err := amendOver(t, at, uuidAmend(t, scheme, list[4:6]))
		require.NoError(t, err)
		require.True(t, again.Unchanged)
		require.NoError(t, at.Delete(t.Context(), before.Objects()[1].Key))
		_, err = amendOver(t, at, uuidAmend(t, scheme, list[:4]))
		require.ErrorContains(t, err, before.Objects()[1].Key+" is missing or has another size")
	})
}

// TestAnAmendOfNewIDsNumbersEverybodyAnew checks the users and the names of such an amend, and what lies between the
// two generations.
func TestAnAmendOfNewIDsNumbersEverybodyAnew(t *testing.T) {
	t.Parallel()
	for _, names := range []bool{true, false} {
		p, _ := uuidPublisher(t)
		scheme := ids.New(ids.UUID, segmentstest.Key(1))
		list := ranked(t, scheme, 0, 9)
		all := uuidGeneration(t, scheme, []string{list[1], list[3], list[7]}, list[5:6], []string{list[3], list[5]})
		if !names {
			all.Back = nil
		}
		before := goLiveWith(t, p, all)
		was, err := ReadLiveState(t.Context(), p.Location)
		require.NoError(t, err)
		done, err := amendOver(t, p.Location, uuidAmend(t, scheme, []string{list[0], list[3], list[4], list[8]}))
		require.NoError(t, err)
		require.EqualValues(t, before.IDs.Count+3, done.Manifest.IDs.Count)
		g := live(t, p.Location)
		require.Equal(t, names, g.Back != nil)
		if !names {
			known := slices.Concat(list[:2], list[3:6], list[7:])
			d, _ := segmentstest.Numbered(t, scheme, known)
			require.Equal(t, d.Bytes(), g.Dictionary.Bytes())
			g.Back = segmentstest.Back(t, scheme, d, known)
		}
		require.Equal(t, sorted([]string{list[1], list[3], list[7]}), namesOf(t, g, g.Bitmaps[0]))
		require.Equal(t, sorted([]string{list[0], list[3], list[4], list[5], list[8]}), namesOf(t, g, g.Sets[0]))
		require.Equal(t, sorted([]string{list[3], list[5]}), namesOf(t, g, g.Sets[1]))
		require.Equal(t, before.Sets[1].AsOf, g.Manifest.Sets[1].AsOf)

		is, err := ReadLiveState(t.Context(), p.Location)
		require.NoError(t, err)
		amends, err := is.AmendedSince(t.Context(), p.Location, was)
		require.NoError(t, err)
		require.True(t, amends)

		// A build in which one user of a segment is another one, beside a later amend of the set.
		swapped := uuidGeneration(t, scheme, []string{list[1], list[3], list[6]}, []string{list[5], list[8]}, nil)
		swapped.Sets[0].AmendedAsOf = segmentstest.Epoch
		swapped.Sets[1].Bitmap = is.Generation.Sets[1]
		swapped.Sets = swapped.Sets[:1]
		goLiveWith(t, p, swapped)
		now, err := ReadLiveState(t.Context(), p.Location)
		require.NoError(t, err)
		amends, err = now.AmendedSince(t.Context(), p.Location, is)
		require.NoError(t, err)
		require.False(t, amends)
	}
}

// TestABuildKeepsAmendedUsersWithoutAnID checks a build of earlier files, which do not have the ids of the amended
// users.
func TestABuildKeepsAmendedUsersWithoutAnID(t *testing.T) {
	t.Parallel()
	for _, grows := range []bool{true, false} {
		p, _ := uuidPublisher(t)
		scheme := ids.New(ids.UUID, segmentstest.Key(1))
		list := ranked(t, scheme, 0, 9)
		first := func() *Candidate {
			c := uuidGeneration(t, scheme, []string{list[1], list[3]}, []string{list[3], list[5]}, list[1:2])
			c.Sets[0].Growth.OnlyGrows = grows
			return c
		}
		goLiveWith(t, p, first())
		amended := uuidAmend(t, scheme, []string{list[0], list[4], list[6], list[8]})
		_, err := amendOver(t, p.Location, amended)
		require.NoError(t, err)

		built := first()
		built.Bitmaps[0] = bitmap.Of(append(built.Bitmaps[0].IDs(), 2)...) // list[5] is in the segment now
		base, err := (&Session{Numbering: built.Dictionary}).ReadLive(t.Context(), p.Location)
		require.NoError(t, err)
		over, by, kept, err := built.KeepAmended(base)
		require.NoError(t, err)
		require.Len(t, kept, 1)
		require.Equal(t, grows, kept[0].Joined)
		require.EqualValues(t, 6, kept[0].Users)
		require.EqualValues(t, 7, over.Dictionary.Len())
		require.EqualValues(t, 3, built.Dictionary.Len(), "another base may follow")
		require.EqualValues(t, 1, over.Compare(by.Generation)[0].Added)
		require.Equal(t, Same, over.CompareSets(by.Generation)[0].State)
		_, err = p.Publish(t.Context(), over, by, "")
		require.NoError(t, err)
		g := live(t, p.Location)
		require.Equal(t, sorted([]string{list[1], list[3], list[5]}), namesOf(t, g, g.Bitmaps[0]))
		want := sorted([]string{list[0], list[3], list[4], list[5], list[6], list[8]})
		require.Equal(t, want, namesOf(t, g, g.Sets[0]))
		require.Equal(t, list[1:2], namesOf(t, g, g.Sets[1]))
	}
}

// TestAnAmendWithOtherIDsIsRefused checks candidates of another kind or key than the live generation.
func TestAnAmendWithOtherIDsIsRefused(t *testing.T) {
	t.Parallel()
	p, _ := uuidPublisher(t)
	scheme := ids.New(ids.UUID, segmentstest.Key(1))
	list := ranked(t, scheme, 0, 3)
	goLiveWith(t, p, uuidGeneration(t, scheme, list, list[:1], nil))
	for name, c := range map[string]*Candidate{
		"another key":  uuidAmend(t, ids.New(ids.UUID, segmentstest.Key(2)), list),
		"another kind": uuidAmend(t, ids.New(ids.Text, segmentstest.Key(1)), list),
		"dense":        {Sets: []Set{{Name: "opted-out", Bitmap: bitmap.Of(1)}}},
	} {
		base, err := (&Session{}).ReadForAmend(t.Context(), p.Location, c)
		require.NoError(t, err, name)
		_, _, err = c.Over(base)
		var wrong *segments.IDsError
		require.ErrorAs(t, err, &wrong, name)
	}
	dense := objects.NewDirectory(t.TempDir())
	publishOver(t, dense, withSets(asOf("opted-out", segmentstest.Epoch, 1)))
	c := uuidAmend(t, scheme, list)
	base, err := (&Session{}).ReadForAmend(t.Context(), dense, c)
	require.NoError(t, err)
	_, _, err = c.Over(base)
	require.ErrorContains(t, err, "has dense ids")
}
