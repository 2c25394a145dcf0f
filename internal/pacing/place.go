package pacing

import (
	"math"
	"slices"
	"time"
)

// MostSteps limits the work for one request to the store for permits. A granted slot costs one step if its distance
// from the slot before differs from the earlier distances. A store allows fewer steps if the store checks many limits
// in each step. If a request has taken MostSteps steps and could get further permits, the store ends the grant and sets
// Grant.More.
const MostSteps = 500

// The function Place finds the earliest allowed slots for the permits of a request, and adds these permits to the logs
// of all targets of the request. The function Place may leave more runs in a log than MostRuns, so the caller must call
// Log.Merge before or after Place. If Ask.Ends is set, Place adds no permits.
func Place(now Time, ask *Ask, logs []*Log) Placed {
	p := newPlacement(now, ask, logs)
	permits := int64(ask.Permits)
	if ask.Ends {
		permits = 0
	}
	next := p.fill(permits)
	p.Next, p.Target, p.Limit = next.at, next.target, next.limit
	if p.Next == now {
		p.Target = -1
	}
	p.More = p.Total < permits && p.Next <= p.deadline
	return p.Placed
}

// The type Placed is the result of the function Place.
type Placed struct {
	Log // the granted permits only; Total is their number

	More          bool // Place ended because of MostSteps
	Next          Time // the slot that one more permit would get
	Target, Limit int  // the reason why Next is not earlier, as in Grant
}

// The type "placement" is the state of one call to Place while Place searches for slots.
type placement struct {
	Placed
	now      Time
	deadline Time // the latest slot that the ask allows
	logs     []*Log
	sources  []source // in the order of the targets
	steps    int
}

// The type "source" is the permit of a log that determines the next slot under one limit: the Max-th newest permit of
// the log. A limit allows another permit as soon as the slot of its source permit (the Max-th newest permit) is one
// window old.
type source struct {
	log           *Log
	target, limit int
	max           int64
	window        int64
	permit        int64 // number of the permit; a permit before log.first() is not in the log and delays no slot
	run           int   // index of the run that contains the permit
	looked        int   // the work of the latest call of room: the strands times the windows that room checked
	ends, begins  walk  // walks over the windows that contain slots ahead; see room
}

func newPlacement(now Time, ask *Ask, logs []*Log) *placement {
	p := &placement{now: now, deadline: now.Add(ask.MaxWait), logs: logs}
	for t := range ask.Targets {
		log := logs[t]
		log.Absorb(now)
		for i, limit := range ask.Targets[t].Limits {
			s := source{log: log, target: t, limit: i, max: int64(limit.Max), window: limit.Window.Microseconds()}
			s.move(log.Total - s.max)
			p.sources = append(p.sources, s)
		}
	}
	return p
}

// The method "move" sets the source permit (the permit on which the limit's next slot depends) to the permit with the
// given number.
func (s *source) move(permit int64) {
	s.permit = permit
	if permit < s.log.first() {
		return
	}
	if s.run = min(s.run, len(s.log.Runs)-1); s.log.Runs[s.run].First <= permit && permit < s.log.end(s.run) {
		return
	}
	s.run = s.log.holder(permit)
}

// The method "kept" reports whether the log still contains the source permit, on which the limit's next slot depends.
func (s *source) kept() bool { return s.permit >= s.log.first() && s.permit < s.log.Total }

// The method "opens" returns the first instant at which a limit of a pacer allows one more permit.
func (s *source) opens() Time {
	if !s.kept() {
		return math.MinInt64
	}
	r := &s.log.Runs[s.run]
	return r.slot(s.permit-r.First) + Time(s.window)
}

// The method "room" returns the number of further permits that one limit of a pacer allows with the slot t. If the
// limit allows no permit at t, "room" returns 0 and a later instant to try. The method "room" checks only the run that
// contains the source permit, so the returned number may be too small.
func (s *source) room(t Time) (permits int64, opens Time) {
	if len(s.log.Ahead) == 0 {
		s.looked = 0
		return s.roomAfter(t, 0)
	}
	ahead := &s.log.Ahead
	s.looked = len(*ahead)
	permits, opens = s.roomAfter(t, ahead.through(t))
	first := ahead.after(t)
	if permits == 0 || first >= t+Time(s.window) {
		return permits, opens
	}
	// A permit at t also counts in windows that end at later slots.
	if all, later := s.roomAfter(t, ahead.through(t+Time(s.window)-1)); all > 0 {
		return min(permits, all), t
	} else if later > opens {
		opens = later
	}
	full, looks := t, 0
	ends, begins := &s.ends, &s.begins
	ends.begin(*ahead, t)
	begins.begin(*ahead, t-Time(s.window))
	for c := first; c < t+Time(s.window); c = ends.next() {
		s.looked += len(*ahead)
		if looks++; looks > MostWindows {
			return 0, opens
		}
		ends.to(c)
		begins.to(c - Time(s.window))
		n := max(0, s.max-ends.passed+begins.passed)
		if ends.passed < s.max {
			n, _ = s.roomAfter(c, ends.passed)
		}
		if permits = min(permits, n); n == 0 {
			full = c
		}
	}
	return permits, full
}

// roomAfter returns the number of further permits that one limit of a pacer allows in the window that ends at t. The
// argument "ahead" of roomAfter is the number of permits in Log.Ahead (the reserved slots) up to t. If the window has
// no room for a permit, roomAfter returns 0 and the first instant at which older permits leave the window.
func (s *source) roomAfter(t Time, ahead int64) (permits int64, opens Time) {
	since := t - Time(s.window)
	if ahead >= s.max {
		if n := s.max - ahead + s.log.Ahead.through(since); n > 0 {
			return n, t
		}
		return 0, max(s.log.Ahead.after(since)+Time(s.window), s.log.Ahead.behind(since, s.window, s.max))
	}
	s.move(s.log.Total - s.max + ahead)
	if !s.kept() {
		return s.log.first() - s.permit, t
	}
	r := &s.log.Runs[s.run]
	if opens = r.slot(s.permit-r.First) + Time(s.window); opens > t {
		return 0, opens
	}
	return r.First + r.through(since, s.log.end(s.run)-r.First) - s.permit, t
}

// roomRepeated returns a number of permits that a limit allows from the instant t on, with the same distances and
// bursts as in the run "like". The number from roomRepeated may be too small, but is never too large.
func (s *source) roomRepeated(t Time, like *Run) int64 {
	if s.kept() {
		r := &s.log.Runs[s.run]
		left := s.log.end(s.run) - s.permit
		slower := r.Every == 0 || like.Burst%r.Burst == 0 && like.Burst/r.Burst*r.Every <= like.Every
		if slower && left >= like.Burst && r.slot(s.permit+like.Burst-1-r.First)+Time(s.window) <= t {
			return left
		}
	}
	permits, _ := s.roomAfter(t, 0)
	return permits
}

// The type "next" describes the slot (start time) of the next permit, and the target and limit that prevent an earlier
// slot.
type next struct {
	at, unaligned Time
	target, limit int    // the target and limit that prevent an earlier slot, as in Grant
	ahead         []room // by target; nil: no later permit can get an earlier slot at any target
}

// A room value says whether later permits of one target may still get slots before a new slot.
type room struct {
	ahead bool
	own   Time // the first slot that the limits of this target alone allow
}

// The method "earliest" returns the first slot (start time), at or after the instant "from", that the limits allow. The
// argument "of" of the method "earliest" is the index of the target whose limits apply, or -1 for the limits of all
// targets. The method "earliest" also returns the target and the limit that prevent an earlier slot. If no limit
// prevents an earlier slot, the returned limit is ByQueue. If the slot is equal to "from", the returned target is -1.
func (p *placement) earliest(from Time, of int) (at Time, target, limit int) {
	at, target, limit = from, -1, ByQueue
	ahead := false
	for t, log := range p.logs {
		if of >= 0 && of != t {
			continue
		}
		ahead = ahead || len(log.Ahead) > 0
		if newest, ok := log.newest(); ok && newest > at {
			at, target = newest, t
		}
	}
	work := 0
	for looks, moved := 0, true; moved; looks++ {
		moved = false
		for i := range p.sources {
			s := &p.sources[i]
			if of >= 0 && of != s.target {
				continue
			}
			_, opens := s.room(at)
			if work += s.looked; opens > at {
				at, target, limit = opens, s.target, s.limit
				moved = ahead
			}
		}
		// If the search found a slot, the limits have already checked it. A slot after all slots of all logs is not
		// checked yet.
		if moved && (looks == MostLooks || work > MostWork) {
			at = max(at, p.behindAll())
		}
	}
	return at, target, limit
}

// MostLooks and MostWork limit the search for a free slot between slots that are already reserved. If the search takes
// more than MostLooks steps, or more work than MostWork, the permit gets a slot after all reserved slots. The work of
// one step is the number of strands (series of slots) times the number of checked windows, summed over the limits.
const (
	MostLooks = 500
	MostWork  = 30_000
)

// MostWindows is the largest number of windows of one limit that the search for a slot checks for each slot. If the
// slot is in more than MostWindows windows with reserved slots, the search counts all these reserved slots as if they
// were in one window.
const MostWindows = 1000

// behindAll returns the latest slot (start time) in the logs of all targets of the permit request.
func (p *placement) behindAll() (at Time) {
	for _, log := range p.logs {
		if newest, ok := log.Newest(); ok {
			at = max(at, newest)
		}
	}
	return at
}

// The method "next" finds the slot (start time) of the next permit, at the instant "from" or later.
func (p *placement) next(from Time) (n next) {
	n.at, n.target, n.limit = p.earliest(from, -1)
	if len(p.logs) == 1 {
		return n
	}
	for t := range p.logs {
		if own, leaves := p.leavesRoom(t, n.at); leaves {
			if n.ahead == nil {
				n.ahead = make([]room, len(p.logs))
			}
			n.ahead[t] = room{true, own}
		}
	}
	n.unaligned = n.at
	if n.ahead != nil {
		p.align(&n)
	}
	return n
}

// leavesRoom returns the first slot (start time) that one target of the permit request would grant if the request named
// no other target. The result "leaves" reports whether a later permit can still get this first slot after the current
// permit has got the slot "at".
func (p *placement) leavesRoom(target int, at Time) (own Time, leaves bool) {
	own, _, _ = p.earliest(p.now, target)
	for i := range p.sources {
		if s := &p.sources[i]; s.target == target && s.max == 1 && at-own < Time(s.window) {
			return own, false
		}
	}
	return own, own < at
}

// The method "align" delays a permit that waits for another target, so that no fraction of an interval is wasted at a
// target with a rate. After the delay, the distance from the target's previous slot is a whole number of the rate's
// intervals.
func (p *placement) align(n *next) {
	for i := range p.sources {
		s := &p.sources[i]
		if s.max > 1 || !n.ahead[s.target].ahead {
			continue
		}
		before, ok := s.log.Ahead.before(n.at)
		if !ok {
			before, ok = s.log.newest()
		}
		past := (n.at - before) % Time(s.window)
		if !ok || past == 0 {
			continue
		}
		up := n.at + Time(s.window) - past
		if at, _, _ := p.earliest(up, -1); at == up && p.affords(n, up) {
			n.at = up
			return // a further delay could leave a free slot for the next permit before this slot
		}
	}
}

// AlignShare limits the loss of a pacer's rate when the method "align" delays slots: at most 1/AlignShare of the rate.
const AlignShare = 20

// The method "affords" reports whether the method "align" may delay a permit until the instant "to". The method
// "affords" checks the targets at which no later permit can get an earlier slot. If each of these targets loses only a
// small part of its rate, "affords" returns true. A target loses only a small part of its rate if the delay of the
// permit is small, or if the delays of its last permits together are small.
func (p *placement) affords(n *next, to Time) bool {
	for i := range p.sources {
		s := &p.sources[i]
		if n.ahead[s.target].ahead || Time(s.window) >= AlignShare*(to-n.at) {
			continue
		}
		back := s.log.Total + s.log.Ahead.through(n.at) - (AlignShare - 1)
		if s.max > 1 || back >= s.log.Total ||
			back >= s.log.first() && to-s.log.slot(back) > AlignShare*Time(s.window) {
			return false
		}
	}
	return true
}

// The method "fill" adds permits to the logs, one slot after the other. The method "fill" ends when all permits of the
// request have slots or the next slot is too late. The result of fill is the slot that the next permit of another call
// would get.
func (p *placement) fill(permits int64) next {
	for {
		other := p.next(p.now)
		n := other
		// After align, or after a search that stopped at its limit, free slots may remain before the newest slot.
		if newest, some := p.newest(); some && n.at < newest {
			n = p.next(newest)
		}
		if p.Total == permits || n.at > p.deadline || p.steps == MostSteps {
			return other
		}
		p.steps++
		if n.ahead != nil {
			raw := n.at == n.unaligned
			p.put(&n, 0, 1, 1)
			if raw {
				p.repeatAhead(&n, permits-p.Total)
			}
			continue
		}
		room := permits - p.Total
		for i := range p.sources {
			fits, _ := p.sources[i].room(n.at)
			room = min(room, fits)
		}
		p.put(&n, 0, room, room)
		p.repeat(permits - p.Total)
	}
}

// The method "put" adds the permits, with the found slot, to the log of every target of the request and to the grant.
func (p *placement) put(n *next, every, burst, permits int64) {
	for t, log := range p.logs {
		if n.ahead != nil && n.ahead[t].ahead {
			log.Absorb(n.ahead[t].own)
			log.Stand(n.at, permits)
			continue
		}
		log.Absorb(n.at)
		log.Append(n.at, every, burst, permits)
	}
	p.Append(n.at, every, burst, permits)
	for i := range p.sources {
		s := &p.sources[i]
		s.move(s.log.Total - s.max)
	}
}

// The method "repeat" extends the grant's last run, in one step, by as many bursts at equal distances as all limits
// allow. The method "repeat" works only under two conditions: the limit that delays the next slot counts from a slot of
// the same run, and Log.Ahead is empty in all logs. The argument "left" of the method "repeat" is the number of permits
// that the grant still needs.
func (p *placement) repeat(left int64) {
	last := &p.Runs[len(p.Runs)-1]
	count := p.Total - last.First
	if last.Every == 0 || count%last.Burst != 0 {
		return
	}
	newest := last.slot(count - 1)
	inLine := make([]bool, len(p.logs)) // by target: no later permit can get a slot before the new slots
	for _, log := range p.logs {
		if len(log.Ahead) > 0 {
			return
		}
	}
	slots := min(left/last.Burst, int64(p.deadline-newest)/last.Every)
	tight := false
	for i := range p.sources {
		s := &p.sources[i]
		inLine[s.target] = inLine[s.target] || s.max == 1 && last.Every < 2*s.window
		if s.permit < s.log.Total-count {
			if s.opens() > newest+Time(last.Every) {
				return
			}
			slots = min(slots, s.roomRepeated(newest+Time(last.Every), last)/last.Burst)
			inLine[s.target] = inLine[s.target] || s.leads(newest+Time(last.Every), last)
			continue
		}
		switch within := s.max / last.Burst * last.Every; {
		case within < s.window:
			return
		case within == s.window && s.max%last.Burst == 0:
			tight, inLine[s.target] = true, true
		}
	}
	if !tight || slots < 1 || len(p.logs) > 1 && slices.Contains(inLine, false) {
		return
	}
	p.put(&next{at: newest + Time(last.Every)}, last.Every, last.Burst, slots*last.Burst)
}

// The method "leads" reports whether the limit allows the next burst of permits exactly at t, and further bursts at the
// distances of the run "like".
func (s *source) leads(t Time, like *Run) bool {
	if !s.kept() || s.opens() != t {
		return false
	}
	r := &s.log.Runs[s.run]
	return r.Every == like.Every && r.Burst == like.Burst && (s.permit-r.First)%r.Burst == 0
}

// repeatAhead extends the grant's last run, in one step, if the slots of this run are in Log.Ahead (slots with free
// slots before them) at some targets. The method repeatAhead works only under two conditions. The targets with slots in
// Log.Ahead (reserved slots) can take all new slots in one step. Every other target has a rate that delays the run.
func (p *placement) repeatAhead(n *next, left int64) {
	last := &p.Runs[len(p.Runs)-1]
	if last.Every == 0 || last.Burst != 1 {
		return
	}
	slots := min(left, int64(p.deadline-n.at)/last.Every)
	tight, rated := false, make([]bool, len(p.logs))
	for t, log := range p.logs {
		if n.ahead[t].ahead {
			if len(log.Ahead) != 1 || log.Ahead[0].Every != last.Every || log.Ahead[0].Burst != 1 ||
				log.Ahead[0].newest() != n.at {
				return
			}
			slots = min(slots, MostBurst-log.Ahead[0].Permits)
		} else if len(log.Ahead) > 0 {
			return
		}
	}
	count := p.Total - last.First
	for i := range p.sources {
		s := &p.sources[i]
		if n.ahead[s.target].ahead {
			room, _ := s.roomAfter(p.now, s.log.Ahead.through(Never-1))
			slots = min(slots, room-1)
			s.move(s.log.Total - s.max)
			continue
		}
		rated[s.target] = rated[s.target] || s.max == 1 && last.Every < 2*s.window
		if s.permit < s.log.Total-count {
			if s.opens() > n.at+Time(last.Every) {
				return
			}
			slots = min(slots, s.roomRepeated(n.at+Time(last.Every), last))
			continue
		}
		if s.max*last.Every < s.window {
			return
		}
		tight = tight || s.max*last.Every == s.window
	}
	for t := range p.logs {
		if !n.ahead[t].ahead && !rated[t] {
			return
		}
	}
	if !tight || slots < 1 {
		return
	}
	at := n.at + Time(last.Every)
	for t, log := range p.logs {
		if n.ahead[t].ahead {
			log.Ahead[0].Permits += slots
		} else {
			log.Append(at, last.Every, 1, slots)
		}
	}
	p.Append(at, last.Every, 1, slots)
	for i := range p.sources {
		p.sources[i].move(p.sources[i].log.Total - p.sources[i].max)
	}
}

// WaitRuns returns the runs of the log. The result gives each slot as the wait from now until the slot.
func (l *Log) WaitRuns(now Time) []WaitRun {
	runs := make([]WaitRun, len(l.Runs))
	for i, r := range l.Runs {
		runs[i] = WaitRun{r.At.Sub(now), time.Duration(r.Every) * time.Microsecond, int(r.Burst),
			int(l.end(i) - r.First)}
	}
	return runs
}

// StateOf returns the State of the target's log at the instant now: the used slots, and the waits until the newest and
// the next slot.
func StateOf(now Time, target *Target, log *Log) State {
	p := newPlacement(now, &Ask{Targets: []Target{*target}}, []*Log{log})
	next, _, _ := p.earliest(now, -1)
	state := State{Next: next.Sub(now)}
	if newest, ok := log.Newest(); ok && newest > now {
		state.Queue = newest.Sub(now)
	}
	for _, limit := range target.Limits {
		state.Used = append(state.Used, int(log.used(int64(limit.Max), now-Time(limit.Window.Microseconds()))))
	}
	return state
}
