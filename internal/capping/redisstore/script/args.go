package script

import (
	"strconv"
	"time"

	"capper/internal/capping"
)

// An Args encodes Redis commands, one at a time, and reuses its memory for the next command. Only one goroutine at a
// time may use an Args.
type Args struct {
	argv []any  // pointers to the elements of args
	args []blob // slices of buf
	buf  []byte
	ends []int // ends of the keys in buf

	users []byte
	logs  []byte // the users' logs, in a call of union.lua
	known []byte // version of the live changes, in a call of filter.lua
	head  [filterHeaderSize]byte
	rules []byte // rules, or tokens in a call of union.lua
	count [8]byte

	counting bool
	groups   int         // number of groups to which the users of a filter call belong
	numbers  [256]uint16 // number of each group within the call, from 1
}

// The type "blob" is one argument of a Redis command, as bytes. Unlike a slice or a string, a pointer to a blob becomes
// an interface value without an allocation.
type blob []byte

// MarshalBinary gives the bytes of an argument to the Redis library go-redis.
func (b *blob) MarshalBinary() ([]byte, error) { return *b, nil }

// Values returns the name and the arguments of the encoded command, for the Redis library. The returned arguments are
// valid until the Args encodes its next command.
func (a *Args) Values() []any { return a.argv }

// The method Set encodes a Redis command that runs no script over users.
func (a *Args) Set(args ...string) {
	a.args, a.argv = a.args[:0], a.argv[:0]
	for _, arg := range args {
		a.args = append(a.args, blob(arg))
	}
	a.setPointers()
}

// The method Filter encodes a call of filter.lua for the users in the argument "items" (see Plan). All users in "items"
// are in one partition. The argument "prefix" of Filter is the text with which all Redis keys of the partition begin.
// The argument "known" of Filter is the version of the partition's live changes (changes of sets by API calls) that the
// caller has. If "known" is nil, filter.lua does not compare versions of live changes. The encoded Redis command is
// complete only after the caller has called StampFilter, which adds the header.
func (a *Args) Filter(s *Script, k Keyspace, prefix string, items []uint64, users []capping.UserID,
	groups []uint8, book *Rulebook, c Counts, known *string) {
	rules := a.chooseRules(book, items, groups)
	keys := a.endCounts(a.encodeUsers(s, k, prefix, items, users, groups), prefix, c)
	if known == nil {
		a.finish(keys, a.head[:], rules, a.users)
		return
	}
	a.buf = AppendLiveKey(a.buf, prefix)
	a.endKey()
	a.known = append(a.known[:0], *known...)
	a.finish(keys+1, a.head[:], rules, a.users, a.known)
}

// endCounts ends the encoding of the keys. If the call counts sends, endCounts appends the key of the message's counts.
// The method endCounts returns the number of keys in the command.
func (a *Args) endCounts(keys int, prefix string, c Counts) int {
	if a.counting = c.Counted; !c.Counted {
		return keys
	}
	a.buf = AppendCountsKey(a.buf, prefix, c.Token)
	a.endKey()
	return keys + 1
}

// StampFilter writes the header of a filter call, that is, the arguments that are equal for all users of the call.
func (a *Args) StampFilter(h Header) {
	h.groups, h.counting = a.groups, a.counting
	h.append(a.head[:0])
}

// The method Release encodes a call of release.lua for the users in the argument "items" (see Plan). The encoded Redis
// command is complete only after the caller has called StampRelease, which adds the header.
func (a *Args) Release(s *Script, k Keyspace, prefix string, items []uint64, users []capping.UserID, c Counts) {
	keys := a.encodeUsers(s, k, prefix, items, users, nil)
	a.finish(a.endCounts(keys, prefix, c), a.head[:releaseHeaderSize], a.users)
}

// StampRelease writes the header of a call of release.lua, a script that removes sends. The script release.lua removes
// the sends with the token (short hash of a message) on the channel up to the time "until". Channel 0 means all
// channels.
func (a *Args) StampRelease(now capping.Instant, skew time.Duration, channel capping.Channel, token capping.Token,
	until capping.Instant) {
	appendRelease(a.head[:0], now, skew, channel, token, until, a.counting)
}

// The method Erase encodes a call of erase.lua, a script that removes the log of one user. The encoded Redis command is
// complete only after the caller has called StampTime, which adds the header.
func (a *Args) Erase(s *Script, key, field string) {
	a.begin(s)
	a.buf = append(a.buf, key...)
	a.endKey()
	a.finish(1, blob(field), a.head[:stampSize])
}

// StampTime writes the argument header of a Lua script. StampTime is for scripts whose header contains only the time
// and the clock tolerance.
func (a *Args) StampTime(now capping.Instant, skew time.Duration) {
	appendStamp(a.head[:0], now, skew)
}

// The method "begin" starts to encode a command that calls the Lua script s. After begin, the caller must call endKey
// after each key, and finish after the last argument.
func (a *Args) begin(s *Script) {
	a.buf, a.ends, a.args, a.argv = a.buf[:0], a.ends[:0], a.args[:0], a.argv[:0]
	a.args = append(a.args, blob("evalsha"), blob(s.SHA), nil)
}

// endKey marks the end of a Redis key in buf.
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

// chooseRules gives numbers to the groups (users with the same rules) that occur in the call. The method chooseRules
// returns the encoded rules of these groups.
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

// encodeUsers starts to encode a call of the script, with one key for each bucket of users. The method encodeUsers then
// encodes the users. If the argument "groups" is not nil, it also encodes the numbers of the users' groups. The method
// encodeUsers returns the number of keys.
func (a *Args) encodeUsers(s *Script, k Keyspace, prefix string, items []uint64, users []capping.UserID,
	groups []uint8) (keys int) {
	a.begin(s)
	a.users = a.users[:0]
	for rest := items; len(rest) > 0; keys++ {
		bucket, n := k.BucketOf(rest[0]), 1
		for n < len(rest) && n < keyUsers && k.BucketOf(rest[n]) == bucket {
			n++
		}
		a.buf = AppendKey(a.buf, prefix, bucket)
		a.endKey()
		a.users = append(a.users, byte(n))
		for _, item := range rest[:n] {
			a.users = k.appendField(a.users, item, users)
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
