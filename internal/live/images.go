package live

import (
	"cmp"
	"slices"
	"sort"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// A bitmap cannot contain images (64-bit hashes of ids). The bitmaps of a generation (published version) contain 32-bit
// numbers of users. If no input file of a build contains a user, the user has no such number. For images, a View
// therefore holds the changes that determine membership separately from its bitmap.

// The type "decided" holds the users whose membership in a set is determined by a live change (API call) and not by the
// build. A value of the type "decided" is immutable: the method "put" returns a copy that shares the unchanged blocks.
// The zero value of the type "decided" contains no users.
type decided struct {
	pages [2 * narrowKeys / pageKeys]*page
}

const pageKeys = 256

type page [pageKeys]decisions

// The type "decisions" holds users whose id images (64-bit numbers that stand for ids) have equal upper bits, in
// ascending order, each with its membership. Each element of decisions contains the lower 48 bits of a user's id image,
// and one bit that says whether the user is a member.
type decisions []uint64

const restBits = 48

func restOf(user capping.UserID) uint64 { return uint64(user) & (1<<restBits - 1) }

// The method "put" returns a copy of d. In the copy, the blocks with the given keys are computed again from the list of
// changes.
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

// The method "decide" returns the users of the block whose live change (change by an API call) overrides the build, and
// whether each is a member. The build includes all changes up to the time asOf.
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

// The method "of" reports whether a live change (change by an API call) determines the user's membership. If so, it
// also reports whether the user is a member.
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

// The method "mark" sets marks[i] to the argument "mark" if users[i] is a member of the set and marks[i] is 0. The
// caller must set base[i] to a value other than 0 if the build of the set contains users[i].
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

// viewOfImages returns a View (the members of a set) with all changes of the list, for users with id images (64-bit
// hashes). The method viewOfImages reuses the unchanged blocks of the earlier view "before".
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

// blockKeys returns the distinct upper bits of the given users; users with equal upper bits are stored in the same
// block.
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
