package script

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"capper/internal/capping"
)

// Only package script knows the order of the Lua scripts' arguments and the layout of their replies. A comment at the
// start of each script explains its arguments and its reply. The file contract.go has the headers, rules and replies of
// filter.lua, release.lua and erase.lua, and the arguments and reply of rate.lua. The code that encodes the arguments
// of filter.lua, release.lua and erase.lua is in args.go. Other files handle the other scripts: union.go, count.go
// (atleast.lua), answers.go (also title.lua), beat.go, live.go, lease.go, return.go, and pace.go with pacerlog.go
// (pace.lua, merge.lua, forget.lua). The file constants.go inserts the numbers that Go and Lua share into the texts of
// the scripts.

// keyUsers is the maximum number of users that a script call lists after one Redis key. If a call has more users of a
// bucket, the call lists the key of the bucket several times. With a single command, a script reads the logs of all
// users that the call lists after one key. The constant keyUsers therefore also limits the number of bytes that the
// script reads before it can stop.
const keyUsers = 8

// The constants from instantSize to shadowSize are the sizes in bytes of values, as the arguments and replies of
// scripts encode them. Only the constant channelBits is a size in bits. All encoded values are big endian.
const (
	instantSize  = 5
	durationSize = 6
	skewSize     = 4
	maxSize      = 2
	tokenSize    = len(capping.Token{})
	channelBits  = len(capping.ChannelSet{}) * 8

	stampSize         = instantSize + skewSize
	filterHeaderSize  = 2*instantSize + 4*durationSize + skewSize + 3 + tokenSize
	releaseHeaderSize = stampSize + 1 + tokenSize + instantSize + 1
	ruleSize          = maxSize + durationSize + 2*instantSize + 1
	denialSize        = 1 + instantSize // in the reply, after the letter of the verdict
	shadowSize        = 4               // in the reply, after the letter of the verdict
)

// modeLook, modeRecord and modeCount are the values of one byte in the header of a filter or release call. With
// modeLook, the script writes nothing. With modeRecord, the script writes logs. With modeCount, the script writes logs
// and counts.
const (
	modeLook byte = iota
	modeRecord
	modeCount
)

// kindLimited and kindShadow are bits of the byte with the kind of an encoded rule.
const (
	kindLimited = 1 << iota // limited to some channels, whose bits follow
	kindShadow
)

// These variables describe, for struct.unpack in Lua, the layouts of values that Go encodes.
var (
	stampFormat   = fmt.Sprintf(">I%dI%d", instantSize, skewSize)
	releaseFormat = stampFormat + fmt.Sprintf("Bc%dI%dB", tokenSize, instantSize)
	filterFormat  = ">" + strings.Repeat(fmt.Sprintf("I%d", instantSize), 2) +
		strings.Repeat(fmt.Sprintf("I%d", durationSize), 4) +
		fmt.Sprintf("I%dBBBc%d", skewSize, tokenSize)
	ruleFormat = fmt.Sprintf(">I%dI%d", maxSize, durationSize) + strings.Repeat(fmt.Sprintf("I%d", instantSize), 2) +
		"B"
)

// longestLife is the maximum TTL of a key.
const longestLife = 3650 * 24 * time.Hour

// Header holds the arguments of a filter call that are the same for all users of the call.
type Header struct {
	Now, Since      capping.Instant
	Retention, Skew time.Duration
	Forget          time.Duration // at least Retention: no policy in force counts entries older than Forget
	Record          bool
	Channel         capping.Channel
	groups          int
	counting        bool // count the recorded sends
	Token           capping.Token
}

// The method "keep" returns the time, in milliseconds, for which Redis must keep a key after the newest log entry of
// the key. The result of the method "keep" includes twice the clock tolerance, because the clocks of two servers may
// differ.
func (h *Header) keep() int64 { return h.Forget.Milliseconds() + 2*h.Skew.Milliseconds() }

// Life returns the TTL, in milliseconds, that a script sets for a key that would otherwise expire too early. The TTL
// from Life is a little longer than necessary, so that most later calls need not set the TTL again.
func (h *Header) Life() int64 {
	keep := h.keep()
	return keep + keep/64 + 1
}

func (h *Header) append(dst []byte) []byte {
	dst = appendUint(dst, uint64(h.Now), instantSize)
	dst = appendUint(dst, uint64(h.Since), instantSize)
	dst = appendUint(dst, uint64(h.Retention.Milliseconds()), durationSize)
	dst = appendUint(dst, uint64(h.Forget.Milliseconds()), durationSize)
	dst = appendUint(dst, uint64(h.keep()), durationSize)
	dst = appendUint(dst, uint64(h.Life()), durationSize)
	dst = appendUint(dst, uint64(h.Skew.Milliseconds()), skewSize)
	record := modeLook
	if h.Record {
		record = modeOf(h.counting)
	}
	dst = append(dst, record, byte(h.Channel), byte(h.groups-1))
	return append(dst, h.Token[:]...)
}

// appendUint appends the lowest n bytes of the number v to dst, in big-endian order.
func appendUint(dst []byte, v uint64, n int) []byte {
	for shift := 8 * (n - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(v>>shift))
	}
	return dst
}

// appendStamp appends the time and the clock tolerance. The headers of release.lua and erase.lua begin with the time
// and the clock tolerance.
func appendStamp(dst []byte, now capping.Instant, skew time.Duration) []byte {
	return appendUint(appendUint(dst, uint64(now), instantSize), uint64(skew.Milliseconds()), skewSize)
}

// modeOf returns the mode byte for a call that records or removes sends. If counting is true, the script also counts
// the sends that it records or removes.
func modeOf(counting bool) byte {
	if counting {
		return modeCount
	}
	return modeRecord
}

func appendRelease(dst []byte, now capping.Instant, skew time.Duration, channel capping.Channel, token capping.Token,
	until capping.Instant, counting bool) []byte {
	dst = append(append(appendStamp(dst, now, skew), byte(channel)), token[:]...)
	return append(appendUint(dst, uint64(until), instantSize), modeOf(counting))
}

func appendRule(dst []byte, r *capping.Rule) []byte {
	dst = appendUint(dst, uint64(max(r.Max, 0)), maxSize)
	dst = appendUint(dst, uint64(r.Hold), durationSize)
	dst = appendUint(dst, uint64(max(r.Start, 0)), instantSize)
	dst = appendUint(dst, uint64(max(r.Until, 0)), instantSize)
	kind := byte(0)
	if r.Shadow {
		kind |= kindShadow
	}
	if r.Channels.All() {
		return append(dst, kind)
	}
	dst = append(dst, kind|kindLimited)
	for _, word := range r.Channels {
		for shift := 0; shift < 64; shift += 8 {
			dst = append(dst, byte(word>>shift))
		}
	}
	return dst
}

// ErrReply is the error for a Redis reply that does not have the form of the script's replies.
var ErrReply = errors.New("the reply of Redis does not have the form that capper's Lua script returns")

// DecodeVerdicts decodes the reply of filter.lua, and stores the verdicts of the users in the argument "items".
// DecodeVerdicts returns the number of users that the script decided. If the script could not use the log of a user,
// the user stays Unavailable, and DecodeVerdicts counts the user in the argument "bad".
func DecodeVerdicts(reply string, items []uint64, b *capping.Batch, verdicts []capping.Verdict, bad *BadLogs) (int,
	error) {
	n := 0
	for ; reply != ""; n++ {
		if n == len(items) {
			return n, ErrReply
		}
		i := indexOf(items[n])
		kind := reply[0]
		reply = reply[1:]
		switch kind {
		case 'A':
			verdicts[i] = capping.Verdict{Outcome: capping.Allowed}
		case 'R':
			verdicts[i] = capping.Verdict{Outcome: capping.Replayed}
		case 'D':
			rules := b.Rules[b.Groups[i]]
			if len(reply) < denialSize || int(reply[0]) >= len(rules) {
				return n, ErrReply
			}
			verdicts[i] = denied(rules, reply[0], reply[1:denialSize])
			reply = reply[denialSize:]
		case 'S':
			if len(reply) < shadowSize {
				return n, ErrReply
			}
			shadow := binary.BigEndian.Uint32([]byte(reply[:shadowSize]))
			if !areShadows(shadow, b.Rules[b.Groups[i]]) {
				return n, ErrReply
			}
			verdicts[i] = capping.Verdict{Outcome: capping.Allowed, Shadow: shadow}
			reply = reply[shadowSize:]
		default:
			if !bad.add(kind) {
				return n, ErrReply
			}
		}
	}
	return n, nil
}

// IsOutdated reports whether filter.lua rejected the call because the store has another version of the live changes to
// sets than the caller.
func IsOutdated(reply string) bool { return reply == liveOutdated }

// MarkOutdated sets the verdict Unavailable and Outdated for the users in the argument "items", because sets have
// changed. The argument "since" of MarkOutdated is the instant of the call's first attempt whose result is unknown, or
// Never.
func MarkOutdated(items []uint64, verdicts []capping.Verdict, since capping.Instant) {
	for _, item := range items {
		verdicts[indexOf(item)] = capping.Verdict{Outdated: true, FreesAt: since}
	}
}

// areShadows reports whether the bit mask is not 0 and has only bits of shadow rules (rules that deny nobody).
func areShadows(mask uint32, rules []capping.Rule) bool {
	for left := mask; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros32(left); i >= len(rules) || !rules[i].Shadow {
			return false
		}
	}
	return mask != 0
}

func denied(rules []capping.Rule, index byte, at string) capping.Verdict {
	v := capping.Verdict{Outcome: capping.Denied, Rule: index, FreesAt: capping.Never}
	if rule := &rules[index]; rule.Max > 0 {
		entry := capping.Log(at).At(0)
		v.FreesAt = max(entry+capping.Instant(rule.Hold), rule.Until)
	}
	return v
}

// DecodeReleased decodes the reply of release.lua, and returns the number of users with a result in the reply. The
// argument "again" of DecodeReleased is true if an earlier attempt of the call may have removed the sends already. If
// "again" is true, a send that the script does not find in the log counts as released.
func DecodeReleased(reply string, items []uint64, again bool, released []capping.Released, bad *BadLogs) (int, error) {
	if len(reply) > len(items) {
		return 0, ErrReply
	}
	for n := range len(reply) {
		i := indexOf(items[n])
		switch {
		case reply[n] == 'D' || reply[n] == 'N' && again:
			released[i] = capping.ReleaseDone
		case reply[n] == 'N':
			released[i] = capping.ReleaseAbsent
		case !bad.add(reply[n]):
			return n, ErrReply
		}
	}
	return len(reply), nil
}

// DecodeErased decodes the reply of erase.lua, the script that removes a user's log. If the Redis key of the log has
// the wrong type, DecodeErased counts the user in bad.
func DecodeErased(reply string, bad *BadLogs) error {
	switch {
	case reply == "D" || reply == "N":
	case reply == "T":
		bad.WrongType++
	default:
		return ErrReply
	}
	return nil
}

// RateArgs returns the arguments of rate.lua, except the Redis key.
func RateArgs(rate capping.Rate, users int) []any {
	return []any{rate.UsersPerSecond, rate.Largest(), users}
}

// DecodeRate decodes the reply of rate.lua.
func DecodeRate(reply []int64) (capping.RateState, error) {
	if len(reply) != 4 || reply[0] < 0 || reply[0] > 1 {
		return capping.RateState{}, ErrReply
	}
	millis := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
	return capping.RateState{
		Allowed: reply[0] == 1, Remaining: int(reply[1]), RetryAfter: millis(reply[2]), ResetAfter: millis(reply[3]),
	}, nil
}

// BadLogs counts users whose logs a script could not use: corrupt logs, and logs whose Redis key has the wrong type.
// The script left the bad logs unchanged.
type BadLogs struct{ Corrupt, WrongType int }

func (b *BadLogs) add(kind byte) bool {
	switch kind {
	case 'C':
		b.Corrupt++
	case 'T':
		b.WrongType++
	default:
		return false
	}
	return true
}

// A Rulebook holds the encoded rules of a batch for each group (users with the same rules). A script call gets only the
// rules of the groups to which its users belong.
type Rulebook struct {
	text []byte
	ends []int // by group: the end of its rules in text
	most int   // largest number of rules in one group
}

// NewRulebook encodes the rules of each group. The rules in the argument must have passed Batch.Check.
func NewRulebook(groups [][]capping.Rule) (b Rulebook) {
	for _, rules := range groups {
		b.text = append(b.text, byte(len(rules)))
		for i := range rules {
			b.text = appendRule(b.text, &rules[i])
		}
		b.ends = append(b.ends, len(b.text))
		b.most = max(b.most, len(rules))
	}
	return b
}

func (b *Rulebook) group(g uint8) []byte {
	start := 0
	if g > 0 {
		start = b.ends[g-1]
	}
	return b.text[start:b.ends[g]]
}

// callRules is the largest number of rules in one script call. callJudgements is the largest product of the number of
// rules and the number of users in one script call. Each of the limits callRules and callJudgements keeps a part of the
// script's run time below about a millisecond.
const (
	callRules      = 1024
	callJudgements = 4096
)

// CallUsers returns the largest number of users of the batch in one script call, so that the run time of the call stays
// short. CallUsers never returns more than the argument "most".
func (b *Rulebook) CallUsers(most int) int {
	most = min(most, callJudgements/max(b.most, 1))
	if b.most*min(len(b.ends), most) > callRules {
		most = min(most, callRules/b.most)
	}
	return most
}
