package redisstore

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"capper/internal/capping"
)

// This file alone knows the order of the scripts' arguments; the scripts'
// own headers say what each one means.

//go:embed prelude.lua
var preludeSource string

//go:embed filter.lua
var filterSource string

//go:embed release.lua
var releaseSource string

//go:embed erase.lua
var eraseSource string

//go:embed beat.lua
var beatSource string

//go:embed sign.lua
var signSource string

//go:embed rate.lua
var rateSource string

//go:embed rights.lua
var rightsSource string

type script struct{ source, sha string }

func scriptOf(source string) *script {
	sum := sha1.Sum([]byte(source))
	return &script{source, hex.EncodeToString(sum[:])}
}

type scripts struct{ filter, release, erase, beat, sign, rate, rights *script }

func newScripts() scripts {
	return scripts{
		filter: scriptOf(preludeSource + filterSource), release: scriptOf(preludeSource + releaseSource),
		erase: scriptOf(preludeSource + eraseSource), beat: scriptOf(beatSource), sign: scriptOf(signSource),
		rate: scriptOf(rateSource), rights: scriptOf(rightsSource),
	}
}

// all are those that calls and beats use.
func (s *scripts) all() []*script {
	return []*script{s.filter, s.release, s.erase, s.beat, s.sign, s.rate}
}

// keyUsers is the most users of one key within a call: a bucket with more is
// named several times. They are read at once, so that it bounds what a script
// reads before it can tell that it has read enough.
const keyUsers = 8

// headerSize is the length of the header of filter.lua.
const headerSize = 47

// header is the part of a filter call that is the same for every user.
type header struct {
	now, since      capping.Instant
	retention, skew time.Duration
	forget          time.Duration // at least the retention: what no policy in force can see
	record          bool
	channel         capping.Channel
	groups          int
	token           capping.Token
}

// keep is for how long a key outlives its newest entry, at least: longer than
// the entry counts by what two clocks may differ.
func (h *header) keep() int64 { return h.forget.Milliseconds() + 2*h.skew.Milliseconds() }

// lifeOf is the TTL that is set when keep is not assured: the slack spares
// most calls from setting it.
func lifeOf(keep int64) int64 { return keep + keep/64 + 1 }

func (h *header) append(dst []byte) []byte {
	dst = appendUint(dst, uint64(h.now), 5)
	dst = appendUint(dst, uint64(h.since), 5)
	dst = appendUint(dst, uint64(h.retention.Milliseconds()), 6)
	dst = appendUint(dst, uint64(h.forget.Milliseconds()), 6)
	dst = appendUint(dst, uint64(h.keep()), 6)
	dst = appendUint(dst, uint64(lifeOf(h.keep())), 6)
	dst = appendUint(dst, uint64(h.skew.Milliseconds()), 4)
	record := byte(0)
	if h.record {
		record = 1
	}
	dst = append(dst, record, byte(h.channel), byte(h.groups-1))
	return append(dst, h.token[:]...)
}

// appendUint appends the low n bytes of v, big endian.
func appendUint(dst []byte, v uint64, n int) []byte {
	for shift := 8 * (n - 1); shift >= 0; shift -= 8 {
		dst = append(dst, byte(v>>shift))
	}
	return dst
}

// stampSize is the length of what appendStamp appends.
const stampSize = 9

// appendStamp appends the beginning of the headers of release.lua and erase.lua.
func appendStamp(dst []byte, now capping.Instant, skew time.Duration) []byte {
	return appendUint(appendUint(dst, uint64(now), 5), uint64(skew.Milliseconds()), 4)
}

// releaseHeaderSize is the length of the header of release.lua.
const releaseHeaderSize = stampSize + 1 + len(capping.Token{})

func appendRelease(dst []byte, now capping.Instant, skew time.Duration, channel capping.Channel, token capping.Token) []byte {
	return append(append(appendStamp(dst, now, skew), byte(channel)), token[:]...)
}

// rulebook is the rules of every group, encoded. A call gets those of the
// groups that its users are in.
type rulebook struct {
	text []byte
	ends []int // of each group
	most int   // rules of a group
}

func newRulebook(groups [][]capping.Rule) (rulebook, error) {
	var b rulebook
	if len(groups) == 0 || len(groups) > 256 {
		return b, fmt.Errorf("%d groups of rules: must be 1 to 256", len(groups))
	}
	for g, rules := range groups {
		if len(rules) > 255 {
			return b, fmt.Errorf("group %d: %d rules: at most 255", g, len(rules))
		}
		b.text = append(b.text, byte(len(rules)))
		for i := range rules {
			b.text = appendRule(b.text, &rules[i])
		}
		b.ends = append(b.ends, len(b.text))
		b.most = max(b.most, len(rules))
	}
	return b, nil
}

func (b *rulebook) group(g uint8) []byte {
	start := 0
	if g > 0 {
		start = b.ends[g-1]
	}
	return b.text[start:b.ends[g]]
}

// callRules and callJudgements bound what a call reads of rules, and how often
// it applies one, to about a millisecond each.
const (
	callRules      = 1024
	callJudgements = 4096
)

// callUsers is the most users of a call under these rules.
func (b *rulebook) callUsers() int {
	most := min(callUsers, callJudgements/max(b.most, 1))
	if b.most*min(len(b.ends), most) > callRules {
		most = min(most, callRules/b.most)
	}
	return most
}

// chooseRules numbers the groups of the call's users anew and returns their
// rules.
func (c *call) chooseRules(b *rulebook, groups []uint8) []byte {
	if len(b.ends) == 1 {
		c.groups, c.numbers[0] = 1, 1
		return b.text
	}
	c.rules, c.groups = c.rules[:0], 0
	clear(c.numbers[:])
	for _, item := range c.items {
		if g := groups[indexOf(item)]; c.numbers[g] == 0 {
			c.groups++
			c.numbers[g] = uint16(c.groups)
			c.rules = append(c.rules, b.group(g)...)
		}
	}
	return c.rules
}

func appendRule(dst []byte, r *capping.Rule) []byte {
	dst = appendUint(dst, uint64(max(r.Max, 0)), 2)
	dst = appendUint(dst, uint64(r.Hold), 6)
	dst = appendUint(dst, uint64(max(r.Start, 0)), 5)
	dst = appendUint(dst, uint64(max(r.Until, 0)), 5)
	if r.Channels.All() {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	for _, word := range r.Channels {
		for shift := 0; shift < 64; shift += 8 {
			dst = append(dst, byte(word>>shift))
		}
	}
	return dst
}

var errReply = errors.New("reply of a script that is none")

// decodeVerdicts reads a filter reply into the verdicts of the items and
// returns how many it answers. Users whose log cannot be judged stay
// Unavailable and are counted in bad.
func decodeVerdicts(reply string, items []uint64, b *capping.Batch, verdicts []capping.Verdict, bad *badLogs) (int, error) {
	n := 0
	for ; reply != ""; n++ {
		if n == len(items) {
			return n, errReply
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
			if len(reply) < 6 || int(reply[0]) >= len(rules) {
				return n, errReply
			}
			verdicts[i] = denied(rules, reply[0], reply[1:6])
			reply = reply[6:]
		default:
			if !bad.add(kind) {
				return n, errReply
			}
		}
	}
	return n, nil
}

func denied(rules []capping.Rule, index byte, at string) capping.Verdict {
	v := capping.Verdict{Outcome: capping.Denied, Rule: index, FreesAt: capping.Never}
	if rule := &rules[index]; rule.Max > 0 {
		entry := capping.Log(at).At(0)
		v.FreesAt = max(entry+capping.Instant(rule.Hold), rule.Until)
	}
	return v
}

// decodeReleased is decodeVerdicts for releases. Where an earlier attempt may
// have removed the send, an absent one counts as done.
func decodeReleased(reply string, items []uint64, again bool, released []capping.Released, bad *badLogs) (int, error) {
	if len(reply) > len(items) {
		return 0, errReply
	}
	for n := range len(reply) {
		i := indexOf(items[n])
		switch {
		case reply[n] == 'D' || reply[n] == 'N' && again:
			released[i] = capping.ReleaseDone
		case reply[n] == 'N':
			released[i] = capping.ReleaseAbsent
		case !bad.add(reply[n]):
			return n, errReply
		}
	}
	return len(reply), nil
}

// badLogs counts users whose log a script left alone.
type badLogs struct{ corrupt, wrongType int }

func (b *badLogs) add(kind byte) bool {
	switch kind {
	case 'C':
		b.corrupt++
	case 'T':
		b.wrongType++
	default:
		return false
	}
	return true
}

// encodeUsers sets the command of c to the script with a key for each bucket
// of c's items, then the fixed arguments, then the users with their groups'
// numbers, if they have any.
func (c *call) encodeUsers(l layout, prefix string, s *script, groups []uint8, fixed ...[]byte) {
	c.begin(s)
	keys := 0
	c.users = c.users[:0]
	for rest := c.items; len(rest) > 0; keys++ {
		bucket, n := l.bucket(userOf(rest[0])), 1
		for n < len(rest) && n < keyUsers && l.bucket(userOf(rest[n])) == bucket {
			n++
		}
		c.buf = appendKey(c.buf, prefix, bucket)
		c.endArg()
		c.users = append(c.users, byte(n))
		for _, item := range rest[:n] {
			c.users = append(c.users, l.field(userOf(item)))
		}
		if groups != nil {
			for _, item := range rest[:n] {
				c.users = append(c.users, byte(c.numbers[groups[indexOf(item)]]-1))
			}
		}
		rest = rest[n:]
	}
	c.finish(keys, append(fixed, c.users)...)
}
