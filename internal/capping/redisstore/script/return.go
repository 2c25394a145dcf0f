package script

import (
	"fmt"
	"time"

	"capper/internal/capping"
	"capper/internal/pacing"
)

// returnHeaderSize is the size in bytes of the header with which the argument of return.lua begins.
const returnHeaderSize = stampSize + permitsSize + waitSize + 1

// returnFormat describes the layout of the header of return.lua's argument, for struct.unpack in Lua.
var returnFormat = stampFormat + fmt.Sprintf("I%dI%dB", permitsSize, waitSize)

// These constants are flags of each target (a pacer's log) in the argument of return.lua.
const (
	exactLog     = 1 // see pacing.Exact
	oneOfSeveral = 2 // the pacer has one log for each message
)

// ReturnKeys returns the Redis keys that a call of return.lua needs, in the order in which the script expects them.
func (k PacerKeys) ReturnKeys(ask *pacing.Ask) (keys []string) {
	for _, t := range ask.Targets {
		keys = append(keys, k.Log(t.Pacer, t.Message))
	}
	keys = append(keys, k.Request(ask.Request))
	for _, t := range ask.Targets {
		keys = append(keys, k.Forgotten(t.Pacer))
	}
	return keys
}

// The method Return encodes a call of return.lua, a script that returns the permits of the request "ask" to the pacers,
// except the first "used" permits. The encoded Redis command is complete only after the caller has called StampReturn,
// which adds the time.
func (a *Args) Return(s *Script, keys PacerKeys, ask *pacing.Ask, used int) {
	a.begin(s)
	names := keys.ReturnKeys(ask)
	for _, name := range names {
		a.buf = append(a.buf, name...)
		a.endKey()
	}
	a.users = append(a.users[:0], a.head[:stampSize]...)
	a.users = appendUint(a.users, uint64(max(0, min(used, pacing.MaxPermits))), permitsSize)
	a.users = appendUint(a.users, uint64(ask.MaxWait.Microseconds()), waitSize)
	a.users = append(a.users, byte(len(ask.Targets)))
	for i := range ask.Targets {
		sees := pacing.SeenBy(ask.Targets[i].Limits)
		a.users = append(a.users, flagsOf(&ask.Targets[i]))
		a.users = appendUint(a.users, uint64(sees.Max), countSize)
		a.users = appendUint(a.users, uint64(sees.Window.Microseconds()), windowSize)
	}
	fingerprint := ask.Fingerprint()
	a.users = append(a.users, fingerprint[:]...)
	a.finish(len(names), a.users)
}

// StampReturn writes the time and the clock tolerance into the command that Return has encoded.
func (a *Args) StampReturn(now capping.Instant, skew time.Duration) { a.StampPace(now, skew) }

func flagsOf(t *pacing.Target) (flags byte) {
	if pacing.Exact(t.Limits) {
		flags |= exactLog
	}
	if t.Message != "" {
		flags |= oneOfSeveral
	}
	return flags
}

// GivenBack is the decoded reply of return.lua, a script that returns unused permits.
type GivenBack struct {
	Returned pacing.Returned
	Reused   bool    // the store remembers another request with the same id
	Bad      BadLogs // faults of the Redis keys
}

// DecodeReturned decodes the reply of return.lua if the call returned permits of the request "ask".
func DecodeReturned(reply string, ask *pacing.Ask) (GivenBack, error) {
	var b GivenBack
	none := make([]int, len(ask.Targets))
	switch {
	case reply == "U":
		b.Reused = true
	case len(reply) == 2 && b.Bad.add(reply[0]):
	case len(reply) == 1+timeSize && reply[0] == 'N':
		r := reader{rest: reply[1:]}
		b.Returned = pacing.Returned{At: r.time(), Targets: none}
	case reply != "" && reply[0] == 'R':
		r := reader{rest: reply[1:]}
		more, now, kept := r.uint(1), r.time(), int(r.uint(permitsSize))
		for i := range none {
			none[i] = int(r.uint(permitsSize))
		}
		total := int64(r.uint(totalSize))
		log, err := pacing.DecodeRuns([]byte(r.rest), total)
		if err != nil || r.bad || more > 1 || total > pacing.MaxPermits || int64(kept) > total ||
			len(log.Runs) == 0 && total > 0 {
			return GivenBack{}, ErrReply
		}
		before := pacing.Remembered{More: more == 1, Log: *log}
		b.Returned = before.Back(now, kept)
		b.Returned.Targets = none
	default:
		return GivenBack{}, ErrReply
	}
	return b, nil
}
