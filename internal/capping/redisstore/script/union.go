package script

import (
	"encoding/binary"
	"fmt"
	"strings"

	"capper/internal/capping"
)

// The file union.go has the arguments and the reply of union.lua, which merges users' logs.

const (
	unionHeaderSize = instantSize + 3*durationSize + skewSize + 1
	entriesSize     = 3 // size of the number of a user's log entries
	mergedSize      = 2 // in the reply, after the letter of the result
)

// unionFormat describes the layout of the header of union.lua's arguments, for struct.unpack in Lua.
var unionFormat = fmt.Sprintf(">I%d", instantSize) + strings.Repeat(fmt.Sprintf("I%d", durationSize), 3) +
	fmt.Sprintf("I%dB", skewSize)

func (h *Header) appendUnion(dst []byte) []byte {
	dst = appendUint(dst, uint64(h.Now), instantSize)
	dst = appendUint(dst, uint64(h.Forget.Milliseconds()), durationSize)
	dst = appendUint(dst, uint64(h.keep()), durationSize)
	dst = appendUint(dst, uint64(h.Life()), durationSize)
	dst = appendUint(dst, uint64(h.Skew.Milliseconds()), skewSize)
	return append(dst, modeOf(h.counting))
}

// The method Union encodes a call of union.lua, which merges logs, for the users in the argument "items" (see Plan).
// The arguments "users" and "logs" hold all users and logs of the batch. The script union.lua counts the merged sends
// of messages whose tokens are in the argument "counted". The encoded Redis command is complete only after the caller
// has called StampUnion, which adds the header.
func (a *Args) Union(
	s *Script,
	k Keyspace,
	prefix string,
	items []uint64,
	users []capping.UserID,
	logs []capping.Log,
	counted []capping.Token,
) {
	keys := a.encodeLogs(s, k, prefix, items, users, logs)
	a.counting, a.rules = len(counted) > 0, a.rules[:0]
	for _, token := range counted {
		a.rules = append(a.rules, token[:]...)
		a.buf = AppendCountsKey(a.buf, prefix, token)
		a.endKey()
		keys++
	}
	a.finish(keys, a.head[:unionHeaderSize], a.users, a.logs, a.rules)
}

// StampUnion writes the header of a call of union.lua, a script that merges logs.
func (a *Args) StampUnion(h Header) {
	h.counting = a.counting
	h.appendUnion(a.head[:0])
}

// encodeLogs works like encodeUsers, but encodes a log with each user.
func (a *Args) encodeLogs(s *Script, k Keyspace, prefix string, items []uint64, users []capping.UserID,
	logs []capping.Log) (keys int) {
	a.begin(s)
	a.users, a.logs = a.users[:0], a.logs[:0]
	for rest := items; len(rest) > 0; keys++ {
		bucket, n := k.BucketOf(rest[0]), 1
		for n < len(rest) && n < keyUsers && k.BucketOf(rest[n]) == bucket {
			n++
		}
		a.buf = AppendKey(a.buf, prefix, bucket)
		a.endKey()
		a.users = append(a.users, byte(n))
		for _, item := range rest[:n] {
			log := logs[indexOf(item)]
			a.users = appendUint(k.appendField(a.users, item, users), uint64(log.Len()), entriesSize)
			a.logs = append(a.logs, log...)
		}
		rest = rest[n:]
	}
	return keys
}

// Log returns the log of one user of a batch; the argument "item" stands for the user.
func Log(item uint64, logs []capping.Log) capping.Log { return logs[indexOf(item)] }

// DecodeUnited decodes the reply of union.lua and stores the results in the argument "merged". DecodeUnited returns the
// number of users with a result in the reply.
func DecodeUnited(reply string, items []uint64, merged []capping.Merged, bad *BadLogs) (int, error) {
	n := 0
	for ; reply != ""; n++ {
		if n == len(items) {
			return n, ErrReply
		}
		kind := reply[0]
		reply = reply[1:]
		switch {
		case kind == 'M' && len(reply) >= mergedSize:
			merged[indexOf(items[n])] = capping.MergedOf(int(binary.BigEndian.Uint16([]byte(reply))))
			reply = reply[mergedSize:]
		case !bad.add(kind):
			return n, ErrReply
		}
	}
	return n, nil
}
