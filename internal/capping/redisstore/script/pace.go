package script

import (
	"encoding/hex"
	"fmt"
	"time"

	"capper/internal/capping"
	"capper/internal/pacing"
)

// The file pace.go has the arguments and replies of the scripts for pacers. The file contract.go has the arguments and
// replies of the scripts for users.

// The constants from permitsSize to windowSize are the sizes in bytes of values in the arguments of pace.lua.
const (
	permitsSize    = 3
	waitSize       = 5
	lifeSize       = 5               // the time for which the store remembers a request, in milliseconds
	requestSize    = permitsSize + 8 // permits and fingerprint of one of several combined requests
	paceHeaderSize = stampSize + permitsSize + waitSize + lifeSize + 2

	countSize  = 3 // maximum of a limit, or number of permits that count for it
	windowSize = 6
)

// The constants from timeSize to limitCount describe the trailer of a pacer's stored log, that is, the bytes at its
// end. In the stored log, the trailer follows the cursors. A pacer's stored log has one cursor for each limit.
const (
	timeSize    = 7
	totalSize   = 6
	lengthSize  = 2
	rewriteSize = 4
	fixedAt     = totalSize + lengthSize // adding permits does not change the bytes from here on
	untilAt     = fixedAt + totalSize + timeSize + lengthSize
	rewrittenAt = untilAt + 2*timeSize
	cursorsAt   = rewrittenAt + rewriteSize
	trailerSize = cursorsAt + 2
	logFormat   = 1
	aheadFormat = 2 // a log with slots ahead: programs that know only logFormat would ignore these slots
	areaSize    = 3 // size of the numbers that follow the slots ahead

	copiedRuns = 4 // number of runs that a cursor copies
	noCopies   = 1<<16 - 1
	cursorSize = 2*lengthSize + copiedRuns*pacing.RunSize
	limitCount = pacing.MaxLimits + 1
)

// These variables describe, for struct.unpack in Lua, the layouts of values in the arguments of pace.lua.
var (
	paceFormat    = stampFormat + fmt.Sprintf("I%dI%dI%dBB", permitsSize, waitSize, lifeSize)
	paceOneFormat = paceFormat + fmt.Sprintf("BI%dBI%dI%d", windowSize, countSize, windowSize)
	requestFormat = fmt.Sprintf(">I%dc%d", permitsSize, requestSize-permitsSize)
	runFormat     = ">I7I5I3I6" // see pacing.AppendRun
	strandFormat  = ">I7I5I3I3" // see pacing.Ahead.Append
	cursorFormat  = fmt.Sprintf(">I%dI%dc%d", lengthSize, lengthSize, copiedRuns*pacing.RunSize)
	trailerFormat = fmt.Sprintf(">I%dI%dI%dI%dI%dI%dI%dI%dBB", totalSize, lengthSize, totalSize, timeSize, lengthSize,
		timeSize, timeSize, rewriteSize)
)

const (
	chunkRuns  = 24                           // runs of a log in one read
	shortBytes = trailerSize + pacing.RunSize // bytes in the first read of a log with few limits, without its cursors
	tailBytes  = 1400                         // bytes in the first read of a log
	lookRuns   = 1024                         // number of runs at which pace.lua looks for runs that no limit counts
	keptRuns   = 512                          // number of runs that pace.lua keeps even if no limit counts them
	fullRuns   = pacing.MostRuns - 2
	paceWork   = 1200 // number of checked limits and logs after which a script call ends early
)

// PacerKeys returns the Redis keys of pacers. The keys of all pacers in one group have the same prefix.
type PacerKeys struct{ Prefix string }

// Log returns the Redis key of a pacer's log. For a pacer with one log per message or key, the argument "message" is
// the hash of the message or key; otherwise, "message" is "". Different logs always have different keys, because the
// name of a pacer contains no colon.
func (k PacerKeys) Log(pacer, message string) string {
	if message == "" {
		return k.Prefix + "p:" + pacer
	}
	return k.Prefix + "p:" + pacer + ":" + message
}

// Forgotten returns the Redis key with the time of the latest reset of the pacer. A reset removes the logs (lists of
// granted slots) of the pacer.
func (k PacerKeys) Forgotten(pacer string) string { return k.Prefix + "pf:" + pacer }

// Request returns the Redis key under which the store remembers one permit request, so that a repetition gets the same
// permits.
func (k PacerKeys) Request(r pacing.Request) string {
	return k.Prefix + "pq:" + hex.EncodeToString(r[:])
}

// PaceKeys returns the Redis keys that a call of pace.lua needs, in the order in which the script expects them. The
// comment of Args.Pace explains the argument "joined".
func (k PacerKeys) PaceKeys(ask *pacing.Ask, joined []*pacing.Ask) (keys []string) {
	for _, t := range ask.Targets {
		keys = append(keys, k.Log(t.Pacer, t.Message))
	}
	for _, t := range ask.Targets {
		if t.Message != "" {
			keys = append(keys, k.Forgotten(t.Pacer))
		}
	}
	if requested(ask) {
		keys = append(keys, k.Request(ask.Request))
	}
	for _, one := range joined {
		keys = append(keys, k.Request(one.Request))
	}
	return keys
}

// The function "requested" reports whether the store must remember the permit request, because the request takes
// permits and has an id.
func requested(ask *pacing.Ask) bool { return ask.Permits > 0 && ask.Request != pacing.Request{} }

// The method Pace encodes a call of pace.lua for the request for permits in the argument "ask". The encoded Redis
// command is complete only after the caller has called StampPace, which adds the time. If the argument "joined" is nil,
// "ask" is a single request for permits. If "joined" is not nil, "ask" stands for several joined requests with
// different ids: "ask" has no request id, and asks for the sum of their permits. The joined requests divide the granted
// permits among themselves, in the order of the argument "joined".
func (a *Args) Pace(s *Script, keys PacerKeys, ask *pacing.Ask, joined []*pacing.Ask) {
	a.begin(s)
	names := keys.PaceKeys(ask, joined)
	for _, name := range names {
		a.buf = append(a.buf, name...)
		a.endKey()
	}
	a.users = appendAsk(append(a.users[:0], a.head[:stampSize]...), ask, joined)
	a.finish(len(names), a.users)
}

// StampPace writes the time and the clock tolerance into an encoded call of pace.lua or forget.lua. The arguments of
// pace.lua and forget.lua begin with the time and the clock tolerance.
func (a *Args) StampPace(now capping.Instant, skew time.Duration) {
	appendStamp(a.users[:0], now, skew)
}

// appendAsk appends an encoded request for permits to dst. In the argument of pace.lua, the request follows the time
// and the clock tolerance.
func appendAsk(dst []byte, ask *pacing.Ask, joined []*pacing.Ask) []byte {
	dst = appendUint(dst, uint64(ask.Permits), permitsSize)
	dst = appendUint(dst, uint64(ask.MaxWait.Microseconds()), waitSize)
	dst = appendUint(dst, uint64(ask.RememberedFor().Milliseconds()), lifeSize)
	switch {
	case len(joined) > 0:
		dst = appendTargets(append(dst, 3, byte(len(ask.Targets))), ask.Targets)
		for _, one := range joined {
			fingerprint := one.Fingerprint()
			dst = append(appendUint(dst, uint64(one.Permits), permitsSize), fingerprint[:]...)
		}
		return dst
	case !requested(ask):
		return appendTargets(append(dst, 0, byte(len(ask.Targets))), ask.Targets)
	}
	fingerprint, remember := ask.Fingerprint(), byte(1)
	switch {
	case ask.Ends:
		remember = 4
	case ask.Continues:
		remember = 2
	}
	return append(appendTargets(append(dst, remember, byte(len(ask.Targets))), ask.Targets), fingerprint[:]...)
}

func appendTargets(dst []byte, targets []pacing.Target) []byte {
	for i := range targets {
		t, perMessage := &targets[i], byte(0)
		if t.Message != "" {
			perMessage = 1
		}
		dst = append(dst, perMessage)
		dst = appendUint(dst, uint64(pacing.KeepFor(t.Limits).Microseconds()), windowSize)
		dst = append(dst, byte(len(t.Limits)))
		for _, limit := range t.Limits {
			dst = appendUint(dst, uint64(limit.Max), countSize)
			dst = appendUint(dst, uint64(limit.Window.Microseconds()), windowSize)
		}
	}
	return dst
}

// Paced is the decoded reply of the script pace.lua to a request for permits.
type Paced struct {
	Grant pacing.Grant
	// The fields Full, Reused, Repeated and Bad hold the reason if a reply of pace.lua grants no permits.
	Full     int // index of a target whose log is full at the time Now; -1: none
	Now      pacing.Time
	Reused   bool    // the store remembers another request with the same id
	Repeated []int   // joined requests that are remembered or have faulty keys: each needs its own call
	Bad      BadLogs // faults of the Redis keys
}

// DecodePaced decodes the reply of pace.lua to the request for permits "ask".
func DecodePaced(reply string, ask *pacing.Ask) (Paced, error) {
	p := Paced{Full: -1}
	switch {
	case reply == "U" && requested(ask):
		p.Reused = true
	case len(reply) > 1 && reply[0] == 'R':
		for _, i := range []byte(reply[1:]) {
			p.Repeated = append(p.Repeated, int(i))
		}
	case len(reply) == 2+timeSize && reply[0] == 'F' && int(reply[1]) < len(ask.Targets):
		r := reader{rest: reply[2:]}
		p.Full, p.Now = int(reply[1]), r.time()
	case len(reply) == 2 && p.Bad.add(reply[0]):
	case reply != "" && (reply[0] == 'G' || reply[0] == 'S'):
		r := reader{rest: reply[1:]}
		if reply[0] == 'S' {
			p.Grant = r.single(ask)
		} else {
			p.Grant = r.grant(ask)
		}
		if r.bad || p.Grant.Granted > ask.Permits {
			return Paced{}, ErrReply
		}
	default:
		return Paced{}, ErrReply
	}
	return p, nil
}

// A reader decodes the reply of a script from its start to its end. The field "bad" of a reader is true if the script's
// reply was too short or had another form.
type reader struct {
	rest string
	bad  bool
}

func (r *reader) uint(n int) (v uint64) {
	if len(r.rest) < n {
		r.rest, r.bad = "", true
		return 0
	}
	for i := range n {
		v = v<<8 | uint64(r.rest[i])
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) time() pacing.Time { return pacing.Time(r.uint(timeSize)) }

// The method "index" reads an index below n from one byte of the reply. If the byte is 255, the index is -1.
func (r *reader) index(n int) int {
	i := int(r.uint(1))
	if i == 255 {
		return -1
	}
	r.bad = r.bad || i >= n
	return i
}

func (r *reader) grant(ask *pacing.Ask) (g pacing.Grant) {
	flags, now, next := r.uint(1), r.time(), r.time()
	r.bad = r.bad || flags > 3 || next < now
	g.At, g.Replayed, g.More, g.Next = now, flags&1 != 0, flags&2 != 0, next.Sub(now)
	g.Target = r.index(len(ask.Targets))
	if g.Target >= 0 && !r.bad {
		g.Limit = r.index(len(ask.Targets[g.Target].Limits))
	} else {
		g.Limit = r.index(0)
	}
	for i := range ask.Targets {
		g.States = append(g.States, r.state(now, len(ask.Targets[i].Limits)))
	}
	if r.rest != "" {
		r.runs(&g)
	}
	return g
}

// The method "single" reads a grant in the short form of the reply. The script pace.lua uses the short form if the
// request has one target, and if all permits have the same slot.
func (r *reader) single(ask *pacing.Ask) (g pacing.Grant) {
	now, newest, next, why := r.time(), r.time(), r.time(), int(r.uint(1))
	limits := ask.Targets[0].Limits
	r.bad = r.bad || next < now || why >= len(limits) && why < byQueue || len(ask.Targets) > 1
	g.At, g.Next, g.Limit, g.Granted = now, next.Sub(now), why, int(r.uint(permitsSize))
	if why >= byQueue {
		g.Limit = pacing.ByQueue
	}
	if why == byNothing {
		g.Target = -1
	}
	if g.Granted > 0 {
		g.Runs = []pacing.WaitRun{{Wait: newest.Sub(now), Burst: 1, Permits: g.Granted}}
	}
	state := pacing.State{Queue: max(0, newest.Sub(now)), Next: g.Next}
	for _, limit := range limits {
		state.Used = append(state.Used, min(int(r.uint(countSize))+g.Granted, limit.Max))
	}
	g.States = []pacing.State{state}
	r.bad = r.bad || r.rest != ""
	return g
}

// The reply of pace.lua names the limit that delays the next permit. In place of a limit's number, byQueue means that
// the next permit waits for the newest slot of the log. byNothing means that the next permit need not wait.
const (
	byQueue   = 254
	byNothing = 255
)

func (r *reader) state(now pacing.Time, limits int) (s pacing.State) {
	newest, next := r.time(), r.time()
	r.bad = r.bad || next < now
	s.Queue, s.Next = max(0, newest.Sub(now)), next.Sub(now)
	for range limits {
		s.Used = append(s.Used, int(r.uint(countSize)))
	}
	return s
}

func (r *reader) runs(g *pacing.Grant) {
	total := int64(r.uint(totalSize))
	log, err := pacing.DecodeRuns([]byte(r.rest), total)
	if err == nil && total == 0 && len(log.Runs) == 0 && g.Replayed {
		return // a request that continues an earlier request and got no permits
	}
	if err != nil || len(log.Runs) == 0 || log.Runs[0].First != 0 || total > pacing.MaxPermits {
		r.bad = true
		return
	}
	g.Granted, g.Runs = int(total), log.WaitRuns(g.At)
}

// forgottenFor is the longest time for which Redis may still have an old log of a pacer after an operator has reset
// this pacer. The newest slot in the log may be as far in the future as a call for permits may wait. Redis keeps the
// log of a pacer until the longest window, and a little more, has passed after the newest slot.
const forgottenFor = pacing.MaxWait + pacing.MaxWindow + pacing.MaxWindow/32

// The method Forget encodes a call of forget.lua, a script that removes the logs of a pacer. The encoded Redis command
// is complete only after the caller has called StampPace, which adds the time.
func (a *Args) Forget(s *Script, keys PacerKeys, pacer string) {
	a.begin(s)
	for _, key := range []string{keys.Log(pacer, ""), keys.Forgotten(pacer)} {
		a.buf = append(a.buf, key...)
		a.endKey()
	}
	a.users = append(a.users[:0], a.head[:stampSize]...)
	a.finish(2, a.users, fmt.Append(nil, forgottenFor.Milliseconds()))
}
