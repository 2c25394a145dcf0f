package live

import (
	"slices"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// Margin is the time in milliseconds by which a build may be newer than an added user without overriding the
// addition.
const Margin = capping.Instant(time.Minute / time.Millisecond)

// View says which users are in a set: it combines the set's bitmap in a generation with live changes (changes by API
// calls).
type View struct {
	base *bitmap.Bitmap // nil: no generation contains the set
	asOf capping.Instant

	merged *bitmap.Bitmap // base combined with the first changes, up to the number upTo
	upTo   uint64
	// These fields hold the changes after upTo, which a look-up combines with merged.
	added, removed *bitmap.Bitmap // nil: no such users
	end            uint64         // number of changes in the view

	images *decided // for images: users whose membership a change determines; merged does not contain these changes
}

// recentMax is the maximum number of live changes that a View (the members of a set) holds outside its bitmap. If a
// View (the members of a set) held more changes outside its bitmap, each further change would cost more than a merge
// into the bitmap.
const recentMax = 4096

var nobody = bitmap.Of()

// Bitmap returns the members of the set, without the live changes (changes by API calls) that came after the last
// Merge. If the users have id images, Bitmap returns the user numbers of the members in the build, without any live
// changes (changes by API calls).
func (v *View) Bitmap() *bitmap.Bitmap { return v.merged }

// Mark sets marks[i] to the argument "mark" if users[i] is a member of the set and marks[i] is 0. The argument
// "numbers" of Mark holds, for each user, the number that stands for the user in bitmaps of the generation.
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

// View returns a View of a set: the members in a generation, combined with live changes (changes by API calls). The
// argument "base" is the bitmap of the set in the generation, or nil. The argument asOf is the time up to which the
// bitmap contains all changes. The argument "before" is an earlier View of the same base, or nil; View reuses its
// results. If the new View differs from the earlier View in too many users, the method View merges all changes into the
// bitmap.
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

// Merge returns a View (the members of a set) in which the bitmap contains all live changes, so that look-ups are as
// fast as without such changes.
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

// recent divides the given users into members of the set and other users, and returns both groups as bitmaps. If a
// user's live change does not override the build, the build determines whether the user is a member.
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

// merge returns a View (the members of a set) in which the bitmap contains all live changes. merge copies the blocks
// that have not changed since the View "before".
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

// addTo applies the live changes in a block to the same block of the bitmap from a build.
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

// narrow returns those of the block keys (upper bits of users) that belong to users below 2^32.
func narrow(keys []uint32) (narrow []uint16) {
	for _, key := range keys {
		if key < narrowKeys {
			narrow = append(narrow, uint16(key))
		}
	}
	return narrow
}

// keysOf returns, in ascending order and without repetitions, the upper 16 bits of those users whose numbers are below
// 2^32.
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

// Look calls the function "each" for every set with live changes (changes by API calls), and passes a function that
// returns a View (the members) of the set. Look returns the versions of the store's partitions up to which the returned
// Views (members of sets) contain all changes.
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
