package script

import (
	"encoding/hex"
	"strconv"
	"time"

	"capper/internal/capping"
	"capper/internal/messages"
)

// This file has the keys and fields of the counts of messages, and the arguments of atleast.lua.

// Counts says whether a call over users counts the sends that it records or removes, in one step with the logs. A call
// that may name one key only cannot: see Args.AtLeast.
type Counts struct {
	Counted bool
	Token   capping.Token // of the message
}

// A field of a message's counts, see counts.lua.
const (
	countBits  = 34 // 2^53 are exact in Lua: the rest are hours, until 2083
	countSlack = 6  // hours
)

// AppendCountsKey appends the key of a message's counts to the partition's prefix.
func AppendCountsKey(dst []byte, prefix string, token capping.Token) []byte {
	return hex.AppendEncode(append(append(dst, prefix...), "c:"...), token[:])
}

// AnswersKey is the key of the answers about a message, in the partition of its text.
func AnswersKey(prefix string, token capping.Token) string {
	return prefix + "a:" + hex.EncodeToString(token[:])
}

// IndexKey is the key of the partition's campaigns by their last call. It is no bucket's.
func IndexKey(prefix string) string { return prefix + "a:index" }

// AtLeast sets the call of atleast.lua for the message in the partition of the prefix; keep is for how long logs are
// kept. begins marks a message without counts too. StampAtLeast completes it.
func (a *Args) AtLeast(s *Script, prefix string, token capping.Token, keep time.Duration, begins bool) {
	a.begin(s)
	a.buf = AppendCountsKey(a.buf, prefix, token)
	a.endKey()
	mode := "0"
	if begins {
		mode = "1"
	}
	a.finish(1, nil, strconv.AppendInt(nil, keep.Milliseconds(), 10), []byte(mode))
}

// StampAtLeast sets the time of a call of atleast.lua.
func (a *Args) StampAtLeast(now capping.Instant) { a.args[4] = strconv.AppendInt(nil, int64(now), 10) }

// releasedMark stands behind the channel in the name of the field that counts what was removed.
const releasedMark = "r"

// atLeastField is the field that marks a message's counts as lower bounds.
const atLeastField = "least"

// DecodeCounts adds the fields of a message's counts, as HGETALL has them, to sends by channel. It reports whether
// the fields are lower bounds.
func DecodeCounts(fields []string, sends map[capping.Channel]messages.Sends) (atLeast bool, err error) {
	if len(fields)%2 != 0 {
		return false, ErrReply
	}
	for ; len(fields) > 0; fields = fields[2:] {
		name, released := fields[0], false
		atLeast = atLeast || name == atLeastField
		if n := len(name) - len(releasedMark); n > 0 && name[n:] == releasedMark {
			name, released = name[:n], true
		}
		channel, err := strconv.ParseUint(name, 10, 8)
		if err != nil {
			continue // of a later version
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return false, ErrReply
		}
		of := sends[capping.Channel(channel)]
		if released {
			of.Released += n
		} else {
			of.Recorded += n & (1<<countBits - 1)
		}
		sends[capping.Channel(channel)] = of
	}
	return atLeast, nil
}
