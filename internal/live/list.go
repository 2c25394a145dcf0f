package live

import (
	"cmp"
	"slices"
	"sort"

	"capper/internal/capping"
)

// list holds the changes of one set: for each user the latest one. Changes lie in blocks in the order of the users. The
// users of a block have the same upper bits. A change takes 10 bytes for a user below 2^32, and 14 bytes for any other
// user.
type list struct {
	blocks map[uint32]*block // by key; see keyOf
	counts [kinds]int
	freed  capping.Instant // the changes up to this instant were removed; a generation contains them

	journal []capping.UserID // the users of the latest changes, in the order of their application
	dropped uint64           // the number of changes that the journal held before its first user
}

// journalMax is the largest number of users in a journal. A view that is older is built again.
const journalMax = 1 << 18

func newList() *list { return &list{blocks: map[uint32]*block{}} }

// end returns the number of changes that the list has applied.
func (l *list) end() uint64 { return l.dropped + uint64(len(l.journal)) }

// since returns the users of all changes except the first n. ok is false if the journal no longer holds all of them.
func (l *list) since(n uint64) (users []capping.UserID, ok bool) {
	if n < l.dropped {
		return nil, false
	}
	return l.journal[n-l.dropped:], true
}

// narrowKeys is the number of block keys that users below 2^32 can have.
const narrowKeys = 1 << 16

// keyOf returns the key of the user's block: the upper 16 bits of 32, or narrowKeys and the upper 16 bits of 64. Users
// ascend with their keys.
func keyOf(user capping.UserID) uint32 {
	if user>>32 == 0 {
		return uint32(user >> 16)
	}
	return narrowKeys | uint32(user>>48)
}

// block holds the changes of a set for the users whose ids share one key.
type block struct {
	mids  []uint32 // the 32 bits above lows, for users from 2^32 on; otherwise nil
	lows  []uint16 // the lower 16 bits of the ids
	infos []info   // at the same index
}

// user returns the user at the index of a block with the key. The users of a block ascend.
func (b *block) user(key uint32, i int) capping.UserID {
	if key < narrowKeys {
		return capping.UserID(key)<<16 | capping.UserID(b.lows[i])
	}
	return capping.UserID(key-narrowKeys)<<48 | capping.UserID(b.mids[i])<<16 | capping.UserID(b.lows[i])
}

// put inserts a user's change at the index.
func (b *block) put(at int, user capping.UserID, one info) {
	if keyOf(user) >= narrowKeys {
		b.mids = slices.Insert(b.mids, at, uint32(user>>16))
	}
	b.lows, b.infos = slices.Insert(b.lows, at, uint16(user)), slices.Insert(b.infos, at, one)
}

// add appends a user's change.
func (b *block) add(user capping.UserID, one info) {
	if keyOf(user) >= narrowKeys {
		b.mids = append(b.mids, uint32(user>>16))
	}
	b.lows, b.infos = append(b.lows, uint16(user)), append(b.infos, one)
}

// info is one change without its user: instant (40 bits), client (16 bits), kind (8 bits).
type info uint64

func infoOf(at capping.Instant, by uint16, kind Kind) info {
	return info(at)<<24 | info(by)<<8 | info(kind)
}

func (i info) at() capping.Instant { return capping.Instant(i >> 24) }
func (i info) by() uint16          { return uint16(i >> 8) }
func (i info) kind() Kind          { return Kind(i) }

// later reports whether the change i takes precedence over the change j of the same user.
func (i info) later(j info) bool {
	if i.at() != j.at() {
		return i.at() > j.at()
	}
	return i.kind() > j.kind()
}

// in describes the effect of the change on a build that contains the changes up to asOf: whether the change decides the
// membership, and whether it makes the user a member. An addition counts until the build is newer by margin, because
// the clocks of the build and of the service may differ, and a wrong suppression is better than an unwanted message.
func (i info) in(asOf capping.Instant) (decides, member bool) {
	switch i.kind() {
	case Added:
		return i.at() > asOf-Margin, true
	case Removed:
		return i.at() > asOf, false
	default:
		return false, false
	}
}

// find returns the index of the user in the user's block, or the index at which the user must be inserted.
func (b *block) find(user capping.UserID) (int, bool) {
	key := keyOf(user)
	if key < narrowKeys {
		return slices.BinarySearch(b.lows, uint16(user))
	}
	return sort.Find(len(b.lows), func(i int) int { return cmp.Compare(user, b.user(key, i)) })
}

// of returns the change of a user.
func (l *list) of(user capping.UserID) (info, bool) {
	b := l.blocks[keyOf(user)]
	if b == nil {
		return 0, false
	}
	at, ok := b.find(user)
	if !ok {
		return 0, false
	}
	return b.infos[at], true
}

// apply applies one change to ascending users.
func (l *list) apply(users []capping.UserID, one info) {
	if one.at() <= l.freed {
		return
	}
	for len(users) > 0 {
		key, n := keyOf(users[0]), 1
		for n < len(users) && keyOf(users[n]) == key {
			n++
		}
		b := l.blocks[key]
		if b == nil {
			b = &block{}
			l.blocks[key] = b
		}
		l.applyIn(b, users[:n], one)
		users = users[n:]
	}
	if over := len(l.journal) - journalMax; over > 0 {
		over += journalMax / 2
		l.journal = append(l.journal[:0:0], l.journal[over:]...)
		l.dropped += uint64(over)
	}
}

// fewUsers is the number of users up to which single insertions are faster than a merge.
const fewUsers = 8

// applyIn applies one change to users of the block.
func (l *list) applyIn(b *block, users []capping.UserID, one info) {
	var fresh []capping.UserID
	for _, user := range users {
		at, ok := b.find(user)
		switch {
		case !ok && len(users) <= fewUsers:
			b.put(at, user, one)
		case !ok:
			fresh = append(fresh, user)
		case one.later(b.infos[at]):
			l.counts[b.infos[at].kind()]--
			b.infos[at] = one
		default:
			continue
		}
		l.counts[one.kind()]++
		l.journal = append(l.journal, user)
	}
	if fresh != nil {
		b.insert(fresh, one)
	}
}

// insert adds ascending users who have no change yet.
func (b *block) insert(fresh []capping.UserID, one info) {
	n, key := len(b.lows)+len(fresh), keyOf(fresh[0])
	all := &block{lows: make([]uint16, 0, n), infos: make([]info, 0, n)}
	if key >= narrowKeys {
		all.mids = make([]uint32, 0, n)
	}
	old := 0
	for _, user := range fresh {
		for ; old < len(b.lows) && b.user(key, old) < user; old++ {
			all.add(b.user(key, old), b.infos[old])
		}
		all.add(user, one)
	}
	for ; old < len(b.lows); old++ {
		all.add(b.user(key, old), b.infos[old])
	}
	*b = *all
}

// drop removes all changes that are not later than the instant.
func (l *list) drop(upTo capping.Instant) {
	if upTo <= l.freed {
		return
	}
	l.freed = upTo
	for key, b := range l.blocks {
		kept := &block{}
		for i := range b.lows {
			user := b.user(key, i)
			if b.infos[i].at() > upTo {
				kept.add(user, b.infos[i])
				continue
			}
			l.counts[b.infos[i].kind()]--
			l.journal = append(l.journal, user)
		}
		switch {
		case len(kept.lows) == 0:
			delete(l.blocks, key)
		case len(kept.lows) < len(b.lows):
			l.blocks[key] = &block{slices.Clip(kept.mids), slices.Clip(kept.lows), slices.Clip(kept.infos)}
		}
	}
	if len(l.journal) > journalMax { // the changes above do not go through apply
		l.dropped, l.journal = l.end(), nil
	}
}

// keys returns the keys of the blocks, ascending.
func (l *list) keys() []uint32 {
	keys := make([]uint32, 0, len(l.blocks))
	for key := range l.blocks {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
