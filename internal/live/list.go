package live

import (
	"slices"

	"capper/internal/capping"
)

// list holds the changes of one set: for each user the latest one. Changes lie in blocks of 65,536 neighbouring users,
// 10 bytes each, in the order of the users.
type list struct {
	blocks map[uint16]*block
	counts [kinds]int
	freed  capping.Instant // the changes up to this instant were removed; a generation contains them

	journal []capping.UserID // the users of the latest changes, in the order of their application
	dropped uint64           // the number of changes that the journal held before its first user
}

// journalMax is the largest number of users in a journal. A view that is older is built again.
const journalMax = 1 << 18

func newList() *list { return &list{blocks: map[uint16]*block{}} }

// end returns the number of changes that the list has applied.
func (l *list) end() uint64 { return l.dropped + uint64(len(l.journal)) }

// since returns the users whose changes were applied after the first n. ok is false when the journal is too short.
func (l *list) since(n uint64) (users []capping.UserID, ok bool) {
	if n < l.dropped {
		return nil, false
	}
	return l.journal[n-l.dropped:], true
}

// block holds the changes of users with the same upper half of the id.
type block struct {
	lows  []uint16 // lower halves of the ids, ascending
	infos []info   // at the same index
}

// info is one change without its user: instant (40 bits), client (16 bits), kind (8 bits).
type info uint64

func infoOf(at capping.Instant, by uint16, kind Kind) info {
	return info(at)<<24 | info(by)<<8 | info(kind)
}

func (i info) at() capping.Instant { return capping.Instant(i >> 24) }
func (i info) by() uint16          { return uint16(i >> 8) }
func (i info) kind() Kind          { return Kind(i) }

// later reports whether the change i stands against the change j of the same user.
func (i info) later(j info) bool {
	if i.at() != j.at() {
		return i.at() > j.at()
	}
	return i.kind() > j.kind()
}

// in reports what the change means for a build that contains the changes up to asOf: whether the change decides the
// membership, and whether the user is a member then. An addition outlasts the build by margin, because the clocks of
// the build and of the service may differ, and a wrong suppression is better than an unwanted message.
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

// find returns the index of the user's lower half, or where it belongs.
func (b *block) find(low uint16) (int, bool) { return slices.BinarySearch(b.lows, low) }

// of returns the change of a user.
func (l *list) of(user capping.UserID) (info, bool) {
	b := l.blocks[uint16(user>>16)]
	if b == nil {
		return 0, false
	}
	at, ok := b.find(uint16(user))
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
		key, n := uint16(users[0]>>16), 1
		for n < len(users) && uint16(users[n]>>16) == key {
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
	var fresh []uint16
	for _, user := range users {
		at, ok := b.find(uint16(user))
		switch {
		case !ok && len(users) <= fewUsers:
			b.lows, b.infos = slices.Insert(b.lows, at, uint16(user)), slices.Insert(b.infos, at, one)
		case !ok:
			fresh = append(fresh, uint16(user))
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
func (b *block) insert(fresh []uint16, one info) {
	lows, infos := make([]uint16, 0, len(b.lows)+len(fresh)), make([]info, 0, len(b.lows)+len(fresh))
	old := 0
	for _, low := range fresh {
		for ; old < len(b.lows) && b.lows[old] < low; old++ {
			lows, infos = append(lows, b.lows[old]), append(infos, b.infos[old])
		}
		lows, infos = append(lows, low), append(infos, one)
	}
	b.lows, b.infos = append(lows, b.lows[old:]...), append(infos, b.infos[old:]...)
}

// drop removes the changes up to the instant.
func (l *list) drop(upTo capping.Instant) {
	if upTo <= l.freed {
		return
	}
	l.freed = upTo
	for key, b := range l.blocks {
		kept := &block{}
		for i, low := range b.lows {
			if b.infos[i].at() > upTo {
				kept.lows, kept.infos = append(kept.lows, low), append(kept.infos, b.infos[i])
				continue
			}
			l.counts[b.infos[i].kind()]--
			l.journal = append(l.journal, capping.UserID(key)<<16|capping.UserID(low))
		}
		switch {
		case len(kept.lows) == 0:
			delete(l.blocks, key)
		case len(kept.lows) < len(b.lows):
			l.blocks[key] = &block{slices.Clip(kept.lows), slices.Clip(kept.infos)}
		}
	}
	if len(l.journal) > journalMax { // the changes above do not go through apply
		l.dropped, l.journal = l.end(), nil
	}
}

// keys returns the upper halves of the users with changes, ascending.
func (l *list) keys() []uint16 {
	keys := make([]uint16, 0, len(l.blocks))
	for key := range l.blocks {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
