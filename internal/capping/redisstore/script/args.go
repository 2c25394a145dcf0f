package script

import (
	"strconv"
	"time"

	"capper/internal/capping"
)

// Args are a command, ready to be sent, in memory that serves again.
type Args struct {
	argv []any  // they point into args
	args []blob // into buf
	buf  []byte
	ends []int // of the keys

	users []byte
	logs  []byte // of those users, of a call that merges
	head  [filterHeaderSize]byte
	rules []byte // or tokens, of a call that merges
	count [8]byte

	counting bool
	groups   int         // that the users of a filter call are in
	numbers  [256]uint16 // of those groups within the call, from 1
}

// blob is an argument. A pointer to it goes into an interface without an
// allocation, which a slice or string does not.
type blob []byte

// MarshalBinary is how go-redis reads the argument.
func (b *blob) MarshalBinary() ([]byte, error) { return *b, nil }

// Values are the command's name and arguments, for the client library. They are
// valid until the next command is set.
func (a *Args) Values() []any { return a.argv }

// Set sets a command that is not a script over users.
func (a *Args) Set(args ...string) {
	a.args, a.argv = a.args[:0], a.argv[:0]
	for _, arg := range args {
		a.args = append(a.args, blob(arg))
	}
	a.setPointers()
}

// Filter sets the call of filter.lua for the items, which are of one partition:
// prefix is its keys'. StampFilter completes it.
func (a *Args) Filter(s *Script, k Keyspace, prefix string, items []uint64, groups []uint8, book *Rulebook, c Counts) {
	rules := a.chooseRules(book, items, groups)
	keys := a.encodeUsers(s, k, prefix, items, groups)
	a.finish(a.endCounts(keys, prefix, c), a.head[:], rules, a.users)
}

// endCounts ends the keys with that of the counts, where the call is to reach them.
func (a *Args) endCounts(keys int, prefix string, c Counts) int {
	if a.counting = c.Counted; !c.Counted {
		return keys
	}
	a.buf = AppendCountsKey(a.buf, prefix, c.Token)
	a.endKey()
	return keys + 1
}

// StampFilter sets the header of a filter call.
func (a *Args) StampFilter(h Header) {
	h.groups, h.counting = a.groups, a.counting
	h.append(a.head[:0])
}

// Release sets the call of release.lua for the items. StampRelease completes it.
func (a *Args) Release(s *Script, k Keyspace, prefix string, items []uint64, c Counts) {
	keys := a.encodeUsers(s, k, prefix, items, nil)
	a.finish(a.endCounts(keys, prefix, c), a.head[:releaseHeaderSize], a.users)
}

// StampRelease sets the header of a release: which sends go, on channel 0 those
// of all.
func (a *Args) StampRelease(now capping.Instant, skew time.Duration, channel capping.Channel, token capping.Token) {
	appendRelease(a.head[:0], now, skew, channel, token, a.counting)
}

// Erase sets the call of erase.lua for one user. StampErase completes it.
func (a *Args) Erase(s *Script, key, field string) {
	a.begin(s)
	a.buf = append(a.buf, key...)
	a.endKey()
	a.finish(1, blob(field), a.head[:stampSize])
}

// StampErase sets the header of an erasure.
func (a *Args) StampErase(now capping.Instant, skew time.Duration) {
	appendStamp(a.head[:0], now, skew)
}

// begin starts the command of a script; begin, endKey for each key, finish.
func (a *Args) begin(s *Script) {
	a.buf, a.ends, a.args, a.argv = a.buf[:0], a.ends[:0], a.args[:0], a.argv[:0]
	a.args = append(a.args, blob("evalsha"), blob(s.SHA), nil)
}

// endKey ends a key that was appended to buf.
func (a *Args) endKey() { a.ends = append(a.ends, len(a.buf)) }

func (a *Args) finish(keys int, rest ...[]byte) {
	a.args[2] = strconv.AppendInt(a.count[:0], int64(keys), 10)
	start := 0
	for _, end := range a.ends {
		a.args = append(a.args, a.buf[start:end:end])
		start = end
	}
	for _, arg := range rest {
		a.args = append(a.args, arg)
	}
	a.setPointers()
}

func (a *Args) setPointers() {
	for i := range a.args {
		a.argv = append(a.argv, &a.args[i])
	}
}

// chooseRules numbers the groups of the call's users anew and returns their
// rules.
func (a *Args) chooseRules(b *Rulebook, items []uint64, groups []uint8) []byte {
	if len(b.ends) == 1 {
		a.groups, a.numbers[0] = 1, 1
		return b.text
	}
	a.rules, a.groups = a.rules[:0], 0
	clear(a.numbers[:])
	for _, item := range items {
		if g := groups[indexOf(item)]; a.numbers[g] == 0 {
			a.groups++
			a.numbers[g] = uint16(a.groups)
			a.rules = append(a.rules, b.group(g)...)
		}
	}
	return a.rules
}

// encodeUsers begins the command of the script with a key for each bucket of the
// items, and encodes the users with their groups' numbers, if they have any. It returns
// how many keys there are.
func (a *Args) encodeUsers(s *Script, k Keyspace, prefix string, items []uint64, groups []uint8) (keys int) {
	a.begin(s)
	a.users = a.users[:0]
	for rest := items; len(rest) > 0; keys++ {
		bucket, n := k.Bucket(UserOf(rest[0])), 1
		for n < len(rest) && n < keyUsers && k.Bucket(UserOf(rest[n])) == bucket {
			n++
		}
		a.buf = AppendKey(a.buf, prefix, bucket)
		a.endKey()
		a.users = append(a.users, byte(n))
		for _, item := range rest[:n] {
			a.users = append(a.users, k.Field(UserOf(item)))
		}
		if groups != nil {
			for _, item := range rest[:n] {
				a.users = append(a.users, byte(a.numbers[groups[indexOf(item)]]-1))
			}
		}
		rest = rest[n:]
	}
	return keys
}
