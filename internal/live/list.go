package live

import (
	"cmp"
	"slices"
	"sort"

	"capper/internal/capping"
)

// The type "list" holds the live changes (changes by API calls) of one set: the latest change of each user. The list
// stores the changes in blocks of users with equal upper bits, in ascending order of users. The upper bits that the
// users of a block have in common are the key of the block. A live change takes 10 bytes of memory for a user below
// 2^32, and 14 bytes for other users.
type list struct {
	blocks map[uint32]*block // by the key of the block; see keyOf
	counts [kinds]int
	freed  capping.Instant // changes up to this time were removed, because all generations in use contain them

	journal []capping.UserID // users of the latest changes, in the order of the applied changes
	dropped uint64           // number of changes whose users were removed from the journal
}

// journalMax is the maximum number of users in the journal of a list (the users of the latest changes). A View that is
// older than the oldest change in the journal must be computed again from all changes.
const journalMax = 1 << 18

func newList() *list { return &list{blocks: map[uint32]*block{}} }

// The method "end" returns the number of changes that were applied to the list.
func (l *list) end() uint64 { return l.dropped + uint64(len(l.journal)) }

// The method "since" returns the users of all changes that were applied to the list, except the first n changes. The
// result "ok" is false if the list's journal no longer contains all of these changes.
func (l *list) since(n uint64) (users []capping.UserID, ok bool) {
	if n < l.dropped {
		return nil, false
	}
	return l.journal[n-l.dropped:], true
}

// narrowKeys is the number of blocks into which all users below 2^32 are divided; each block has 65,536 users.
const narrowKeys = 1 << 16

// keyOf returns the upper bits of a user, which are the key of the block that contains the user. The key of a user
// below 2^32 is the upper 16 of 32 bits. The key of another user is narrowKeys combined with the upper 16 of 64 bits.
// If one user id is higher than another, its key is the same or higher.
func keyOf(user capping.UserID) uint32 {
	if user>>32 == 0 {
		return uint32(user >> 16)
	}
	return narrowKeys | uint32(user>>48)
}

// A block holds the live changes (changes by API calls) of all users whose ids have the same upper bits.
type block struct {
	mids  []uint32 // for users from 2^32 on: the 32 bits above lows; otherwise nil
	lows  []uint16 // lower 16 bits of the users
	infos []info   // the change of the user with the same index
}

// The method "user" returns the user at index i of the block of changes; the argument "key" is the key of the block.
// The users of a block of live changes (changes by API calls) are in ascending order.
func (b *block) user(key uint32, i int) capping.UserID {
	if key < narrowKeys {
		return capping.UserID(key)<<16 | capping.UserID(b.lows[i])
	}
	return capping.UserID(key-narrowKeys)<<48 | capping.UserID(b.mids[i])<<16 | capping.UserID(b.lows[i])
}

// The method "put" inserts the live change (change by an API call) of a user at an index of the block.
func (b *block) put(at int, user capping.UserID, one info) {
	if keyOf(user) >= narrowKeys {
		b.mids = slices.Insert(b.mids, at, uint32(user>>16))
	}
	b.lows, b.infos = slices.Insert(b.lows, at, uint16(user)), slices.Insert(b.infos, at, one)
}

// The method "add" appends the change of a user to the block.
func (b *block) add(user capping.UserID, one info) {
	if keyOf(user) >= narrowKeys {
		b.mids = append(b.mids, uint32(user>>16))
	}
	b.lows, b.infos = append(b.lows, uint16(user)), append(b.infos, one)
}

// The type "info" is a live change (change by an API call) without the user: 40 bits for the time, 16 bits for the
// client, 8 bits for the kind.
type info uint64

func infoOf(at capping.Instant, by uint16, kind Kind) info {
	return info(at)<<24 | info(by)<<8 | info(kind)
}

func (i info) at() capping.Instant { return capping.Instant(i >> 24) }
func (i info) by() uint16          { return uint16(i >> 8) }
func (i info) kind() Kind          { return Kind(i) }

// The method "later" reports whether the live change i takes precedence over the live change j of the same user.
func (i info) later(j info) bool {
	if i.at() != j.at() {
		return i.at() > j.at()
	}
	return i.kind() > j.kind()
}

// The method "in" reports whether the live change (change by an API call) overrides a build of the set that includes
// all changes up to the time asOf. The result "member" says whether the change makes the user a member. If a live
// change adds a user, the change even overrides builds that are newer by less than the time Margin, because clocks may
// differ. The reason for Margin: it is better to withhold a message by mistake than to send an unwanted message.
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

// The method "find" returns the index of the user in the block of live changes (changes by API calls). If the block
// does not contain the user, the method "find" returns the index for an insertion of the user.
func (b *block) find(user capping.UserID) (int, bool) {
	key := keyOf(user)
	if key < narrowKeys {
		return slices.BinarySearch(b.lows, uint16(user))
	}
	return sort.Find(len(b.lows), func(i int) int { return cmp.Compare(user, b.user(key, i)) })
}

// The method "of" returns the latest live change (change by an API call) of a user in the set, if the user has one.
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

// The method "apply" records the same live change (change by an API call) for several users, who must be in ascending
// order.
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

// fewUsers is the maximum number of users whose changes are inserted one by one into a block. For more users, a merge
// of the block with the new changes is faster.
const fewUsers = 8

// applyIn records the same live change (change by an API call) for several users of one block of a set's changes.
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

// The method "insert" adds a live change (change by an API call) for users who have no change in the block yet. The
// users must be in ascending order.
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

// The method "drop" removes all changes up to the given time from the list, including changes at this time.
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
	if len(l.journal) > journalMax { // the removals above do not use apply
		l.dropped, l.journal = l.end(), nil
	}
}

// The method "keys" returns the keys (upper bits of users) of all blocks in ascending order.
func (l *list) keys() []uint32 {
	keys := make([]uint32, 0, len(l.blocks))
	for key := range l.blocks {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
