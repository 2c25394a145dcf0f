package live

import (
	"slices"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// Margin is a time in milliseconds: the addition of a user overrides builds whose as-of time is less than Margin later.
const Margin = capping.Instant(time.Minute / time.Millisecond)

// A View holds the members of a set: the set's bitmap in a generation, combined with live changes (changes by API
// calls).
type View struct {
	base *bitmap.Bitmap // nil: no generation contains the set
	asOf capping.Instant

	merged *bitmap.Bitmap // base, combined with the first upTo changes of the list
	upTo   uint64
	// The fields "added" and "removed" hold the changes after the first upTo changes. A look-up combines these changes
	// with the field "merged".
	added, removed *bitmap.Bitmap // nil: no such users
	end            uint64         // number of changes of the list that the view contains

	images *decided // for id images: users whose membership a live change determines; merged contains no live changes
}

// recentMax is the maximum number of live changes that a View (the members of a set) holds outside its bitmap. Above
// recentMax changes, each further change would cost more than a merge of all changes into the bitmap.
const recentMax = 4096

var nobody = bitmap.Of()

// Bitmap returns the members of the set, without the live changes (changes by API calls) that came after the last
// Merge. If the users have id images, Bitmap returns the user numbers of the members in the build, without any live
// changes (changes by API calls).
func (v *View) Bitmap() *bitmap.Bitmap { return v.merged }

// The method Mark sets marks[i] to the argument "mark" if users[i] is a member of the set and marks[i] is 0. The
// argument "numbers" holds each user's number in the bitmaps of the generation.
func (v *View) Mark(users []capping.UserID, numbers []uint32, marks []uint8, mark uint8) {
	if v.images != nil {
		own := make([]uint8, len(numbers))
		v.merged.Mark(numbers, own, 1)
		v.images.mark(users, own, marks, mark)
		return
	}
	if v.removed == nil {
		v.merged.Mark(numbers, marks, mark)
	} else {
		own := make([]uint8, 2*len(numbers))
		left := own[len(numbers):]
		v.merged.Mark(numbers, own[:len(numbers)], 1)
		v.removed.Mark(numbers, left, 1)
		for i := range numbers {
			if own[i] > left[i] && marks[i] == 0 {
				marks[i] = mark
			}
		}
	}
	if v.added != nil {
		v.added.Mark(numbers, marks, mark)
	}
}

// The method View returns the members of a set: the members in a generation, combined with live changes (changes by API
// calls). The argument "base" is the bitmap of the set in the generation, or nil. The argument asOf is the time up to
// which the bitmap includes all changes. The argument "before" is an earlier View of the same base whose results are
// reused, or nil. If the bitmap of the earlier View lacks more than recentMax changes, the method View merges all
// changes into the bitmap.
func (l *Lists) View(set string, base *bitmap.Bitmap, asOf capping.Instant, before *View) *View {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.view(set, base, asOf, before)
}

func (l *Lists) view(set string, base *bitmap.Bitmap, asOf capping.Instant, before *View) *View {
	of := l.sets[set]
	switch {
	case of == nil:
		return &View{base: base, asOf: asOf, merged: orNobody(base)}
	case l.images:
		return of.viewOfImages(base, asOf, before)
	}
	if before == nil || before.base != base || before.asOf != asOf {
		return of.merge(base, asOf, nil)
	}
	if before.end == of.end() {
		return before
	}
	recent, ok := of.since(before.upTo)
	if !ok || len(recent) > recentMax {
		return of.merge(base, asOf, before)
	}
	next := *before
	next.end = of.end()
	next.added, next.removed = of.recent(recent, base, asOf)
	return &next
}

// The method Merge returns a View (the members of a set) whose bitmap contains all live changes, so that look-ups are
// as fast as without live changes.
func (l *Lists) Merge(set string, v *View) *View {
	l.mu.RLock()
	defer l.mu.RUnlock()
	of := l.sets[set]
	switch {
	case of == nil || v.upTo == of.end():
		return v
	case l.images:
		return of.viewOfImages(v.base, v.asOf, v)
	}
	return of.merge(v.base, v.asOf, v)
}

func orNobody(b *bitmap.Bitmap) *bitmap.Bitmap {
	if b == nil {
		return nobody
	}
	return b
}

// The method "recent" divides the given users into members of the set and other users, and returns both groups as
// bitmaps. If a user's live change (change by an API call) does not override the build, the build determines whether
// the user is a member.
func (l *list) recent(users []capping.UserID, base *bitmap.Bitmap, asOf capping.Instant) (added,
	removed *bitmap.Bitmap) {
	var in, out []capping.UserID
	for _, user := range users {
		known, _ := l.of(user)
		decides, member := known.in(asOf)
		if !decides {
			member = base != nil && base.Contains(capping.Dense(user))
		}
		if member {
			in = append(in, user)
		} else {
			out = append(out, user)
		}
	}
	return bitmapOf(in), bitmapOf(out)
}

func bitmapOf(users []capping.UserID) *bitmap.Bitmap {
	if users == nil {
		return nil
	}
	return bitmap.Of(capping.AppendDense(nil, users)...)
}

// The method "merge" returns a View (the members of a set) whose bitmap contains all live changes. The method "merge"
// copies the blocks that have not changed since the View "before".
func (l *list) merge(base *bitmap.Bitmap, asOf capping.Instant, before *View) *View {
	v := &View{base: base, asOf: asOf, upTo: l.end(), end: l.end()}
	from, keys := orNobody(base), narrow(l.keys())
	if before != nil {
		if recent, ok := l.since(before.upTo); ok {
			from, keys = before.merged, keysOf(recent)
		}
	}
	v.merged = bitmap.Patch(from, keys, func(key uint16, w *bitmap.Words) {
		if base != nil {
			base.Add(int(key), w)
		}
		l.blocks[uint32(key)].addTo(w, asOf)
	})
	return v
}

// addTo applies the live changes (changes by API calls) in a block to the same block of the bitmap from a build.
func (b *block) addTo(w *bitmap.Words, asOf capping.Instant) {
	if b == nil {
		return
	}
	for i, low := range b.lows {
		if decides, member := b.infos[i].in(asOf); decides {
			w.Put(low, member)
		}
	}
}

// The function "narrow" returns the block keys (upper bits of user ids) that belong to user ids below 2^32.
func narrow(keys []uint32) (narrow []uint16) {
	for _, key := range keys {
		if key < narrowKeys {
			narrow = append(narrow, uint16(key))
		}
	}
	return narrow
}

// keysOf returns the upper 16 bits of the given 32-bit user ids, in ascending order and without repetitions.
func keysOf(users []capping.UserID) []uint16 {
	var seen [1 << 16]bool
	var keys []uint16
	for _, user := range users {
		if key := uint16(user >> 16); !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// The method Look calls the function "each" for every set with live changes (changes by API calls). Look passes a
// function to "each" that returns a View (the members) of the set. Look returns the latest version of each store
// partition whose changes are all in the Views.
func (l *Lists) Look(each func(set string, view func(base *bitmap.Bitmap, asOf capping.Instant,
	before *View) *View)) (versions []string, changed uint64) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for set := range l.sets {
		each(set, func(base *bitmap.Bitmap, asOf capping.Instant, before *View) *View {
			return l.view(set, base, asOf, before)
		})
	}
	return slices.Clone(l.versions), l.changed.Load()
}
