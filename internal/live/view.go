package live

import (
	"slices"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// Margin is the time, in milliseconds, for which an addition still counts after a newer build.
const Margin = capping.Instant(time.Minute / time.Millisecond)

// View is the membership of one set: the bitmap of a generation with the live changes. A View is immutable.
type View struct {
	base *bitmap.Bitmap // nil: no generation has the set
	asOf capping.Instant

	merged *bitmap.Bitmap // the base with the first upTo changes
	upTo   uint64
	// Changes after upTo, which a lookup applies in addition to merged.
	added, removed *bitmap.Bitmap // nil: none
	end            uint64         // the number of applied changes

	images *decided // in Lists of images: the users about whom changes decide, none of them in merged
}

// recentMax is the largest number of changes that a view keeps outside its bitmap. Beyond this number, each further
// change would cost more than a merge.
const recentMax = 4096

var nobody = bitmap.Of()

// Bitmap returns the members without the changes since the last Merge. In Lists of images they are the members without
// any change, by number.
func (v *View) Bitmap() *bitmap.Bitmap { return v.merged }

// Mark sets marks[i] to mark when users[i], whose number is numbers[i], is a member and marks[i] is 0.
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

// View returns the membership of a set in a generation: base is the set's bitmap there, nil for none, and asOf the
// instant up to which it contains changes. before is an earlier view of the same base, or nil; View takes over what
// it can. A view that would differ from before in too many users is merged at once.
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

// Merge returns the view with all its changes in the bitmap, so that lookups cost as much as without changes.
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

// recent returns the users whose membership a change decides. It also returns former members whose changes no longer
// count, so that the base decides about them.
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

// merge builds a view of all changes. It copies the blocks that are unchanged since the view before.
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

// addTo applies the block's changes to the words of a build.
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

// narrow returns the keys of users below 2^32.
func narrow(keys []uint32) (narrow []uint16) {
	for _, key := range keys {
		if key < narrowKeys {
			narrow = append(narrow, uint16(key))
		}
	}
	return narrow
}

// keysOf returns the upper halves of the users, ascending and without repetition.
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

// Look calls view for every set with changes, and passes a function that returns views. Look returns the versions of
// the partitions that these views contain.
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
