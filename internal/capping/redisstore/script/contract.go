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

// This package alone knows the order of the scripts' arguments and the bytes of their replies; the header of each
// script explains both. This file has the headers, rules and replies of filter.lua, release.lua and erase.lua, and
// the arguments and reply of rate.lua; args.go arranges the arguments of the first three. Every other script has a
// file of its own: union.go, count.go (atleast.lua), answers.go (also title.lua), beat.go, live.go, and pace.go with
// pacerlog.go (pace.lua, merge.lua, forget.lua). constants.go fills the numbers that Go and Lua share into the texts of
// the scripts.

// keyUsers is the maximum number of users for one key in a call. A call names a bucket with more users several times.
// A script reads the users of one key at once, so the maximum also bounds the bytes that it reads before it can stop.
const keyUsers = 8

// The constants instantSize to shadowSize are the sizes of encoded values in bytes, except for channelBits. All
// values are big endian.
const (
	instantSize  = 5
	durationSize = 6
	skewSize     = 4
	maxSize      = 2
	tokenSize    = len(capping.Token{})
	channelBits  = len(capping.ChannelSet{}) * 8

	stampSize         = instantSize + skewSize
	filterHeaderSize  = 2*instantSize + 4*durationSize + skewSize + 3 + tokenSize
	releaseHeaderSize = stampSize + 1 + tokenSize + 1
	ruleSize          = maxSize + durationSize + 2*instantSize + 1
	denialSize        = 1 + instantSize // in the reply, after its letter
	shadowSize        = 4               // in the reply, after its letter
)

// The constants modeLook, modeRecord and modeCount are values of the mode byte in the header of a filter call or a
// release.
const (
	modeLook byte = iota
	modeRecord
	modeCount
)

// The constants below are the bits of a rule's kind.
const (
	kindLimited = 1 << iota // limited to channels, whose bits follow
	kindShadow
)

// The variables below are the same layouts for struct.unpack in Lua.
var (
	stampFormat   = fmt.Sprintf(">I%dI%d", instantSize, skewSize)
	releaseFormat = stampFormat + fmt.Sprintf("Bc%dB", tokenSize)
	filterFormat  = ">" + strings.Repeat(fmt.Sprintf("I%d", instantSize), 2) +
		strings.Repeat(fmt.Sprintf("I%d", durationSize), 4) +
		fmt.Sprintf("I%dBBBc%d", skewSize, tokenSize)
	ruleFormat = fmt.Sprintf(">I%dI%d", maxSize, durationSize) + strings.Repeat(fmt.Sprintf("I%d", instantSize), 2) +
		"B"
)

// longestLife is the maximum TTL of a key.
const longestLife = 3650 * 24 * time.Hour

// Header is the part of a filter call that all its users share.
type Header struct {
	Now, Since      capping.Instant
	Retention, Skew time.Duration
	Forget          time.Duration // at least the retention: no policy in force sees older entries
	Record          bool
	Channel         capping.Channel
	groups          int
	counting        bool // count the recorded sends
	Token           capping.Token
}

// keep returns the minimum time in milliseconds for which a key outlives its newest entry. Twice the clock tolerance
// is added, because two clocks may differ.
func (h *Header) keep() int64 { return h.Forget.Milliseconds() + 2*h.Skew.Milliseconds() }

// Life returns the TTL in milliseconds that a script sets when a key would expire too early. The TTL has slack, so
// that most calls need not set it.
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

// appendUint appends the low n bytes of v, big endian.
func appendUint(dst []byte, v uint64, n int) []byte {
	for shift := 8 * (n - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(v>>shift))
	}
	return dst
}

// appendStamp appends the start of the headers of release.lua and erase.lua: the time and the clock tolerance.
func appendStamp(dst []byte, now capping.Instant, skew time.Duration) []byte {
	return appendUint(appendUint(dst, uint64(now), instantSize), uint64(skew.Milliseconds()), skewSize)
}

// modeOf returns the mode of a call that records or removes sends.
func modeOf(counting bool) byte {
	if counting {
		return modeCount
	}
	return modeRecord
}

func appendRelease(dst []byte, now capping.Instant, skew time.Duration, channel capping.Channel, token capping.Token,
	counting bool) []byte {
	return append(append(append(appendStamp(dst, now, skew), byte(channel)), token[:]...), modeOf(counting))
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

// ErrReply reports that a Redis reply does not have the script's form.
var ErrReply = errors.New("the Redis reply does not have the form that the script returns")

// DecodeVerdicts decodes a filter reply into the verdicts of the items, and returns the number of answered users. A
// user whose log cannot be judged stays Unavailable and is counted in bad.
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

// IsOutdated reports whether a filter reply says that the log of live changes has another version than the caller
// knows.
func IsOutdated(reply string) bool { return reply == liveOutdated }

// MarkOutdated marks the items' users as undecided because sets have changed. since is the instant of the first attempt
// with an unknown result, or Never.
func MarkOutdated(items []uint64, verdicts []capping.Verdict, since capping.Instant) {
	for _, item := range items {
		verdicts[indexOf(item)] = capping.Verdict{Outdated: true, FreesAt: since}
	}
}

// areShadows reports whether the mask names at least one rule, and shadow rules only.
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

// DecodeReleased decodes the reply of release.lua, and returns the number of answered users. again says that an
// earlier attempt may have removed the send; a send that is absent then counts as released.
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

// DecodeErased decodes the reply of an erasure into bad.
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

// RateArgs returns the arguments of rate.lua that follow its key.
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

// BadLogs counts the users whose log a script could not use and left unchanged.
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

// Rulebook holds the encoded rules of every group. A call carries only the rules of its users' groups.
type Rulebook struct {
	text []byte
	ends []int // end of each group in text
	most int   // largest number of rules in one group
}

// NewRulebook encodes the rules of each group. The rules must have passed Batch.Check.
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

// callRules is the maximum number of rules in a call, and callJudgements is the maximum number of applied rules. Each
// bound limits its part of the call to about a millisecond.
const (
	callRules      = 1024
	callJudgements = 4096
)

// CallUsers returns the maximum number of users in a call under these rules, and at most the given number.
func (b *Rulebook) CallUsers(most int) int {
	most = min(most, callJudgements/max(b.most, 1))
	if b.most*min(len(b.ends), most) > callRules {
		most = min(most, callRules/b.most)
	}
	return most
}
