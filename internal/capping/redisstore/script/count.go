package script

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"capper/internal/campaign"
	"capper/internal/capping"
)

// This file is to counts by message what contract.go is to logs.

// Counting is what a call over users does with the sends that it records or removes,
// beside the logs.
type Counting byte

// Sends are counted in one step with the logs. Where the slot's keys are on two nodes, a
// call can reach one key only: it tells how many there are to be counted.
const (
	CountNone Counting = iota
	CountHere
	CountTell
)

// Counts is what is counted of a call: sends of the token.
type Counts struct {
	Counting
	Token capping.Token
}

// A field of a message's counts, see counts.lua.
const (
	countBits  = 34 // 2^53 are exact in Lua: the rest are hours, until 2083
	countSlack = 6  // hours
	owedSize   = 4  // of what a reply tells
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

// Owed is sends of a message on a channel that are to be counted.
type Owed struct {
	Channel capping.Channel
	campaign.Sends
}

// SplitOwed takes what the reply of a filter call tells off its end. Where it
// recorded nothing, nothing is owed.
func (c Counting) SplitOwed(reply string, channel capping.Channel) (rest string, owed []Owed, err error) {
	if c != CountTell {
		return reply, nil, nil
	}
	at := len(reply) - owedSize
	if at < 0 {
		return "", nil, ErrReply
	}
	if n := binary.BigEndian.Uint32([]byte(reply[at:])); n > 0 {
		owed = []Owed{{channel, campaign.Sends{Recorded: int64(n)}}}
	}
	return reply[:at], owed, nil
}

// SplitReleased is SplitOwed for the reply of a release.
func (c Counting) SplitReleased(reply string) (rest string, owed []Owed, err error) {
	if c != CountTell {
		return reply, nil, nil
	}
	end := len(reply) - 1
	if end < 0 || end < int(reply[end])*(1+owedSize) {
		return "", nil, ErrReply
	}
	at := end - int(reply[end])*(1+owedSize)
	for told := reply[at:end]; told != ""; told = told[1+owedSize:] {
		n := binary.BigEndian.Uint32([]byte(told[1:]))
		owed = append(owed, Owed{capping.Channel(told[0]), campaign.Sends{Released: int64(n)}})
	}
	return reply[:at], owed, nil
}

// Owed sets the call of owed.lua. StampOwed completes it.
func (a *Args) Owed(s *Script, prefix string, token capping.Token, keep time.Duration, owed []Owed) {
	a.begin(s)
	a.buf = AppendCountsKey(a.buf, prefix, token)
	a.endKey()
	rest := [][]byte{nil, strconv.AppendInt(nil, keep.Milliseconds(), 10)}
	for _, o := range owed {
		channel := strconv.Itoa(int(o.Channel))
		if o.Recorded > 0 {
			rest = append(rest, []byte(channel), strconv.AppendInt(nil, o.Recorded, 10))
		}
		if o.Released > 0 {
			rest = append(rest, []byte(channel+releasedMark), strconv.AppendInt(nil, o.Released, 10))
		}
	}
	a.finish(1, rest...)
}

// StampOwed sets the time of a call of owed.lua.
func (a *Args) StampOwed(now capping.Instant) { a.args[4] = strconv.AppendInt(nil, int64(now), 10) }

// releasedMark stands behind the channel in the name of the field that counts what was removed.
const releasedMark = "r"

// DecodeCounts adds the fields of a message's counts, as HGETALL has them, to sends by channel.
func DecodeCounts(fields []string, sends map[capping.Channel]campaign.Sends) error {
	if len(fields)%2 != 0 {
		return ErrReply
	}
	for ; len(fields) > 0; fields = fields[2:] {
		name, released := fields[0], false
		if n := len(name) - len(releasedMark); n > 0 && name[n:] == releasedMark {
			name, released = name[:n], true
		}
		channel, err := strconv.ParseUint(name, 10, 8)
		if err != nil {
			continue // of a later version
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return ErrReply
		}
		of := sends[capping.Channel(channel)]
		if released {
			of.Released += n
		} else {
			of.Recorded += n & (1<<countBits - 1)
		}
		sends[capping.Channel(channel)] = of
	}
	return nil
}
