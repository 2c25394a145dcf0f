package live

import (
	"cmp"
	"slices"
	"sort"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// Users with 64-bit images are in no bitmap of their images: a generation has bitmaps of numbers, and somebody whom no
// file names has no number. The changes that decide about such users are therefore beside the bitmap of a View.

// decided holds the users of a set whose membership depends on a change. It is immutable: put returns a copy that
// shares the blocks of other users. The zero value holds nobody.
type decided struct {
	pages [2 * narrowKeys / pageKeys]*page
}

const pageKeys = 256

type page [pageKeys]decisions

// decisions holds the users of a block, ascending: the lower 48 bits of each, and then one bit that says whether the
// user is a member.
type decisions []uint64

const restBits = 48

func restOf(user capping.UserID) uint64 { return uint64(user) & (1<<restBits - 1) }

// put returns a copy of d with new decisions for the users of the given blocks.
func (d *decided) put(l *list, keys []uint32, asOf capping.Instant) *decided {
	next, own := *d, map[uint32]bool{}
	for _, key := range keys {
		p := key / pageKeys
		switch {
		case next.pages[p] == nil:
			next.pages[p] = new(page)
		case !own[p]:
			copied := *next.pages[p]
			next.pages[p] = &copied
		}
		own[p] = true
		next.pages[p][key%pageKeys] = l.blocks[key].decide(key, asOf)
	}
	return &next
}

// decide returns the decisions of the block's changes.
func (b *block) decide(key uint32, asOf capping.Instant) (all decisions) {
	if b == nil {
		return nil
	}
	for i := range b.infos {
		decides, member := b.infos[i].in(asOf)
		if !decides {
			continue
		}
		one := restOf(b.user(key, i)) << 1
		if member {
			one |= 1
		}
		all = append(all, one)
	}
	return slices.Clip(all)
}

// of reports whether a change decides about the user, and whether that change makes the user a member.
func (d *decided) of(user capping.UserID) (decides, member bool) {
	key := keyOf(user)
	p := d.pages[key/pageKeys]
	if p == nil {
		return false, false
	}
	all, rest := p[key%pageKeys], restOf(user)
	at, found := sort.Find(len(all), func(i int) int { return cmp.Compare(rest, all[i]>>1) })
	return found, found && all[at]&1 == 1
}

// mark sets marks[i] to mark when users[i] is a member and marks[i] is 0. base[i] is not 0 when users[i] is a member
// without changes.
func (d *decided) mark(users []capping.UserID, base, marks []uint8, mark uint8) {
	for i, user := range users {
		if marks[i] != 0 {
			continue
		}
		decides, member := d.of(user)
		if member || !decides && base[i] != 0 {
			marks[i] = mark
		}
	}
}

// viewOfImages returns a view of all changes. It reuses the decisions of the view before that have not changed.
func (l *list) viewOfImages(base *bitmap.Bitmap, asOf capping.Instant, before *View) *View {
	v := &View{base: base, asOf: asOf, merged: orNobody(base), upTo: l.end(), end: l.end()}
	if before != nil && before.base == base && before.asOf == asOf && before.images != nil {
		if before.end == l.end() {
			return before
		}
		if recent, ok := l.since(before.end); ok {
			v.images = before.images.put(l, blockKeys(recent), asOf)
			return v
		}
	}
	v.images = new(decided).put(l, l.keys(), asOf)
	return v
}

// blockKeys returns the distinct keys of the users' blocks.
func blockKeys(users []capping.UserID) []uint32 {
	seen := make(map[uint32]bool, len(users))
	for _, user := range users {
		seen[keyOf(user)] = true
	}
	keys := make([]uint32, 0, len(seen))
	for key := range seen {
		keys = append(keys, key)
	}
	return keys
}
