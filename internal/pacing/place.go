package pacing

import (
	"math"
	"time"
)

// MostSteps bounds the work for one ask: the number of irregular places for slots, and fewer when a store
// checks many limits for each. A grant that ends at this bound sets Grant.More.
const MostSteps = 500

// Place adds the permits of the ask to the logs of its targets, at the instant now. The logs may grow beyond
// MostRuns, so the caller merges them before or after.
func Place(now Time, ask *Ask, logs []*Log) Placed {
	p := newPlacement(now, ask, logs)
	p.fill(int64(ask.Permits))
	p.Next, p.Target, p.Limit = p.earliest()
	if p.Next == now {
		p.Target = -1
	}
	p.More = p.Total < int64(ask.Permits) && p.Next <= p.deadline
	return p.Placed
}

// Placed is the result of Place.
type Placed struct {
	Log // the granted permits only: Total is their number

	More          bool // Place ended only because of MostSteps
	Next          Time // the slot that one more permit would have
	Target, Limit int  // the reason why Next is not earlier, as in Grant
}

// placement is the state of one call to Place.
type placement struct {
	Placed
	now      Time
	deadline Time // the latest allowed slot
	logs     []*Log
	sources  []source
	steps    int
}

// source is the Max-th newest permit of a log. The permit must be one window old before its limit allows
// another permit.
type source struct {
	log           *Log
	target, limit int
	max           int64
	window        int64
	permit        int64 // its number; a number below log.first() is not in the log and delays nothing
	run           int   // the index of the run that holds the permit
}

func newPlacement(now Time, ask *Ask, logs []*Log) *placement {
	p := &placement{now: now, deadline: now.Add(ask.MaxWait), logs: logs}
	for t := range ask.Targets {
		log := logs[t]
		for i, limit := range ask.Targets[t].Limits {
			s := source{log: log, target: t, limit: i, max: int64(limit.Max), window: limit.Window.Microseconds()}
			s.move(log.Total - s.max)
			p.sources = append(p.sources, s)
		}
	}
	return p
}

// move makes the given permit the source.
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

// kept reports whether the source permit is in the log.
func (s *source) kept() bool { return s.permit >= s.log.first() && s.permit < s.log.Total }

// opens returns the first slot at which the limit allows one more permit.
func (s *source) opens() Time {
	if !s.kept() {
		return math.MinInt64
	}
	r := &s.log.Runs[s.run]
	return r.slot(s.permit-r.First) + Time(s.window)
}

// room returns how many permits the limit allows at t, as far as the source's run shows. The limit must be
// open at t.
func (s *source) room(t Time) int64 {
	if !s.kept() {
		return s.log.first() - s.permit
	}
	r := &s.log.Runs[s.run]
	return r.First + r.through(t-Time(s.window), s.log.end(s.run)-r.First) - s.permit
}

// roomRepeated returns how many permits the limit allows when they start at t and repeat the pattern of
// like. The result may be too small but never too large.
func (s *source) roomRepeated(t Time, like *Run) int64 {
	if s.kept() {
		r := &s.log.Runs[s.run]
		left := s.log.end(s.run) - s.permit
		slower := r.Every == 0 || like.Burst%r.Burst == 0 && like.Burst/r.Burst*r.Every <= like.Every
		if slower && left >= like.Burst && r.slot(s.permit+like.Burst-1-r.First)+Time(s.window) <= t {
			return left
		}
	}
	return s.room(t)
}

// earliest returns the slot of the next permit and the target and limit that prevent an earlier slot.
func (p *placement) earliest() (at Time, target, limit int) {
	at, target, limit = p.now, -1, ByQueue
	for t, log := range p.logs {
		if newest, ok := log.Newest(); ok && newest > at {
			at, target = newest, t
		}
	}
	for i := range p.sources {
		s := &p.sources[i]
		if opens := s.opens(); opens > at {
			at, target, limit = opens, s.target, s.limit
		}
	}
	return at, target, limit
}

// fill adds permits until all are placed or the next slot is too late.
func (p *placement) fill(permits int64) {
	for ; p.Total < permits && p.steps < MostSteps; p.steps++ {
		at, _, _ := p.earliest()
		if at > p.deadline {
			return
		}
		room := permits - p.Total
		for i := range p.sources {
			room = min(room, p.sources[i].room(at))
		}
		p.put(at, 0, room, room)
		p.repeat(permits - p.Total)
	}
}

// put records permits in every log and in the grant.
func (p *placement) put(at Time, every, burst, permits int64) {
	for _, log := range p.logs {
		log.Append(at, every, burst, permits)
	}
	p.Append(at, every, burst, permits)
	for i := range p.sources {
		p.sources[i].move(p.sources[i].permit + permits)
	}
}

// repeat extends the grant's last run in one step over all slots at which every limit allows the same burst.
// This is possible when the delaying limit waits for a slot of the same run. left is the number of permits
// still wanted.
func (p *placement) repeat(left int64) {
	last := &p.Runs[len(p.Runs)-1]
	count := p.Total - last.First
	if last.Every == 0 || count%last.Burst != 0 {
		return
	}
	newest := last.slot(count - 1)
	slots := min(left/last.Burst, int64(p.deadline-newest)/last.Every)
	tight := false
	for i := range p.sources {
		s := &p.sources[i]
		if s.permit < s.log.Total-count {
			if s.opens() > newest+Time(last.Every) {
				return
			}
			slots = min(slots, s.roomRepeated(newest+Time(last.Every), last)/last.Burst)
			continue
		}
		switch within := s.max / last.Burst * last.Every; {
		case within < s.window:
			return
		case within == s.window && s.max%last.Burst == 0:
			tight = true
		}
	}
	if tight && slots > 0 {
		p.put(newest+Time(last.Every), last.Every, last.Burst, slots*last.Burst)
	}
}

// WaitRuns returns the log's runs with slots as waits from now.
func (l *Log) WaitRuns(now Time) []WaitRun {
	runs := make([]WaitRun, len(l.Runs))
	for i, r := range l.Runs {
		runs[i] = WaitRun{r.At.Sub(now), time.Duration(r.Every) * time.Microsecond, int(r.Burst),
			int(l.end(i) - r.First)}
	}
	return runs
}

// StateOf returns the target's state at the instant now.
func StateOf(now Time, target *Target, log *Log) State {
	p := newPlacement(now, &Ask{Targets: []Target{*target}}, []*Log{log})
	next, _, _ := p.earliest()
	state := State{Next: next.Sub(now)}
	if newest, ok := log.Newest(); ok && newest > now {
		state.Queue = newest.Sub(now)
	}
	for _, limit := range target.Limits {
		state.Used = append(state.Used, int(log.used(int64(limit.Max), now-Time(limit.Window.Microseconds()))))
	}
	return state
}
