package script

import (
	"encoding/hex"
	"strconv"
	"time"

	"capper/internal/capping"
	"capper/internal/messages"
)

// The file count.go has the Redis keys and hash fields of a message's counts, and the arguments of atleast.lua.

// Counts determines whether a script call also counts the sends that the call records or removes, for each message
// separately. A script changes the counts of sends and the logs in one atomic step. A call that may use only one Redis
// key cannot count sends. If a call could not count its sends, the counts of the message are lower bounds; see
// Args.AtLeast.
type Counts struct {
	Counted bool
	Token   capping.Token // token of the message
}

// countBits is the number of lower bits that hold the count in a hash field of counts.lua. In a hash field of
// counts.lua, the upper bits hold the expiry of the counts. countSlack is the number of hours by which the TTL of
// counts is longer than necessary.
const (
	countBits  = 34 // numbers up to 2^53 are exact in Lua; the upper bits are hours, enough until 2083
	countSlack = 6  // hours
)

// AppendCountsKey appends the Redis key of a message's counts of sends in one partition: the partition's prefix and the
// token (short hash of the message) in hexadecimal.
func AppendCountsKey(dst []byte, prefix string, token capping.Token) []byte {
	return hex.AppendEncode(append(append(dst, prefix...), "c:"...), token[:])
}

// AnswersKey returns the Redis key of a message's decision counts, which are in the partition of the message's text.
func AnswersKey(prefix string, token capping.Token) string {
	return prefix + "a:" + hex.EncodeToString(token[:])
}

// IndexKey returns the Redis key of one partition's index of campaigns (messages on channels), sorted by the last call
// of the campaign. No bucket of users has the Redis key of an index.
func IndexKey(prefix string) string { return prefix + "a:index" }

// periodLength is the length of the period of one index, in milliseconds. The index of a period holds the messages
// whose last call was in the period, sorted by the number of users in their calls. All last calls in an index are in
// one period, so the whole index expires at the same time.
const periodLength = 8 * 24 * 3_600_000

// PeriodLength is the length of a period. Each period has an index that sorts the period's messages by the number of
// users in their calls.
const PeriodLength = periodLength * time.Millisecond

// Period returns the number of the period that contains the instant. Each period has its own index, which sorts
// messages by the number of users in their calls.
func Period(at capping.Instant) int64 { return int64(at) / periodLength }

// SizesKey returns the Redis key of one index of campaigns (messages on channels), sorted by the number of users in
// their calls. The index has the partition's campaigns (messages on channels) whose last call was in the period.
func SizesKey(prefix string, period int64) string {
	return prefix + "a:asked:" + strconv.FormatInt(period, 10)
}

// AskedField returns the name of the hash field that counts the users in a message's calls on a channel. LastField
// returns the name of the hash field with the time of the message's last call on the channel.
func AskedField(channel capping.Channel) string {
	return strconv.Itoa(int(channel)) + string(answerAsked)
}
func LastField(channel capping.Channel) string {
	return strconv.Itoa(int(channel)) + string(answerLast)
}

// AtLeast encodes a call of atleast.lua, a script that marks a message's counts in one partition as lower bounds. The
// argument "keep" of AtLeast is the time for which the store keeps users' logs. If the argument "begins" is true,
// atleast.lua also marks a message that has no counts yet. The encoded Redis command is complete only after the caller
// has called StampAtLeast, which adds the time.
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

// StampAtLeast writes the time into the command that AtLeast has encoded.
func (a *Args) StampAtLeast(now capping.Instant) { a.args[4] = strconv.AppendInt(nil, int64(now), 10) }

// releasedMark follows the number of the channel in the name of the field that counts released sends.
const releasedMark = "r"

// atLeastField is the name of the hash field that marks a message's counts as lower bounds.
const atLeastField = "least"

// DecodeCounts decodes a message's counts of sends, and adds them by channel to the map in the argument "sends". The
// argument "fields" of DecodeCounts is the reply of HGETALL. The result "atLeast" of DecodeCounts reports whether the
// counts are lower bounds.
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
