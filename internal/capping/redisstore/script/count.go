package script

import (
	"encoding/hex"
	"strconv"
	"time"

	"capper/internal/capping"
	"capper/internal/messages"
)

// The file count.go has the Redis keys and hash fields of a message's counts, and the arguments of atleast.lua.

// Counts says whether a script call counts the sends that it records or removes. The script changes the counts and the
// logs in one atomic step. A call that may use only one key cannot count sends, so the counts become lower bounds; see
// Args.AtLeast.
type Counts struct {
	Counted bool
	Token   capping.Token // token of the message
}

// countBits is the number of lower bits that hold the count in a hash field that counts.lua writes. The upper bits of
// the hash field hold the expiry of the counts. countSlack is the number of hours by which the TTL of counts exceeds
// the necessary time.
const (
	countBits  = 34 // numbers up to 2^53 are exact in Lua; the upper bits are hours, enough until 2083
	countSlack = 6  // hours
)

// AppendCountsKey appends the key of a message's counts of sends: the partition's prefix and the token in hexadecimal.
func AppendCountsKey(dst []byte, prefix string, token capping.Token) []byte {
	return hex.AppendEncode(append(append(dst, prefix...), "c:"...), token[:])
}

// AnswersKey returns the key of a message's decision counts, in the partition of the message's text.
func AnswersKey(prefix string, token capping.Token) string {
	return prefix + "a:" + hex.EncodeToString(token[:])
}

// IndexKey returns the key of a partition's index of campaigns by their last call. No bucket of users has such a Redis
// key.
func IndexKey(prefix string) string { return prefix + "a:index" }

// periodLength is the length of a period in milliseconds. An index by asked users holds the messages whose last call
// was in one period, so that the whole index expires at once.
const periodLength = 8 * 24 * 3_600_000

// PeriodLength is the length of the period that one index by asked users covers.
const PeriodLength = periodLength * time.Millisecond

// Period returns the number of the period that contains the instant.
func Period(at capping.Instant) int64 { return int64(at) / periodLength }

// SizesKey returns the key of the index by asked users: a partition's campaigns whose last call was in the period.
func SizesKey(prefix string, period int64) string {
	return prefix + "a:asked:" + strconv.FormatInt(period, 10)
}

// AskedField and LastField return the names of two fields in a message's decision counts: the asked users on a channel,
// and the last call on the channel.
func AskedField(channel capping.Channel) string {
	return strconv.Itoa(int(channel)) + string(answerAsked)
}
func LastField(channel capping.Channel) string {
	return strconv.Itoa(int(channel)) + string(answerLast)
}

// AtLeast encodes the call of atleast.lua, which marks the message's counts in one partition as lower bounds. The
// argument "keep" is the retention of the users' logs. If "begins" is true, the script also marks a message that has no
// counts yet. The caller completes the command of AtLeast with StampAtLeast.
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

// StampAtLeast writes the time into a call of atleast.lua.
func (a *Args) StampAtLeast(now capping.Instant) { a.args[4] = strconv.AppendInt(nil, int64(now), 10) }

// releasedMark follows the channel in the name of the field that counts released sends.
const releasedMark = "r"

// atLeastField is the name of the field that marks a message's counts as lower bounds.
const atLeastField = "least"

// DecodeCounts adds a message's counts of sends to the map sends, by channel. The argument "fields" is the reply of
// HGETALL. DecodeCounts reports whether the counts are lower bounds.
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
			continue // a field of a later version
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
