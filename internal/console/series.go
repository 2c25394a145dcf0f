// Package recent keeps, in the process, what was counted within the last day: for the
// console's pictures. It looks at counters that are there anyway, once a second, so
// deciding costs nothing more; what the process counted before it started is not known.
//
// An hour is kept by the second and a day by the minute, of at most maxNames counters:
// some 4 MB at most.
package console

import (
	"context"
	"sync"
	"time"
)

// Name is what is counted.
type Name struct {
	Kind Kind
	Of   string // the limit of Denied and Shadow, the pacer of Granted, Refused and Failed; else ""
}

// Kind is a kind of counts.
type Kind string

// The kinds of counts. The first four are users of filter calls that record.
const (
	Allowed     Kind = "allowed" // recorded by the call
	replayed    Kind = "replayed"
	Denied      Kind = "denied"
	Unavailable Kind = "unavailable"
	Shadow      Kind = "shadow" // of those allowed, whom a shadow limit would have denied

	Granted Kind = "granted" // permits
	refused Kind = "refused" // permits
	failed  Kind = "failed"  // calls for permits
)

// Totals is what was counted since the process began.
type Totals map[Name]float64

// What is shown, what is kept so that the first step of that is whole too, and of how
// many counters.
const (
	hour     = 3600
	seconds  = hour + 60
	day      = 1440
	minutes  = day + 60
	maxNames = 200
)

// Series is the counts of the last day. It is safe for concurrent use.
type Series struct {
	mu     sync.Mutex
	since  time.Time // when counting began
	newest time.Time // the second that is being counted
	before Totals
	counts map[Name]*rings
}

// rings are the counts of one name: at second and minute modulo their sizes.
type rings struct {
	bySecond [seconds]uint32
	byMinute [minutes]uint32
}

// New is a series that begins now, with nothing counted.
func NewSeries(now time.Time) *Series {
	return &Series{since: now, newest: now.Truncate(time.Second), before: Totals{}, counts: map[Name]*rings{}}
}

// Run looks at the totals once a second, until ctx ends.
func (s *Series) Run(ctx context.Context, clock func() time.Time, totals func() Totals) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.Observe(clock(), totals())
		}
	}
}

// Observe counts what came to the totals since it was last called, as of now. A total
// that is smaller than before began anew.
func (s *Series) Observe(now time.Time, totals Totals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now.Truncate(time.Second))
	for name, total := range totals {
		more := total - s.before[name]
		if more < 0 {
			more = total
		}
		if more > 0 {
			s.add(name, uint32(min(more, 1<<31)))
		}
	}
	s.before = totals
}

func (s *Series) add(name Name, more uint32) {
	r := s.counts[name]
	if r == nil {
		if len(s.counts) == maxNames {
			return
		}
		r = &rings{}
		s.counts[name] = r
	}
	r.bySecond[slot(s.newest, time.Second, seconds)] += more
	r.byMinute[slot(s.newest, time.Minute, minutes)] += more
}

// turn goes on to a second: what lay in the slots of those between is a day old. A clock
// that was set back counts on where it was.
func (s *Series) turn(to time.Time) {
	if !to.After(s.newest) {
		return
	}
	for _, r := range s.counts {
		empty(r.bySecond[:], s.newest, to, time.Second)
		empty(r.byMinute[:], s.newest, to, time.Minute)
	}
	s.newest = to
}

func empty(ring []uint32, from, to time.Time, step time.Duration) {
	passed := to.Truncate(step).Sub(from.Truncate(step)) / step
	for i := range min(int(passed), len(ring)) {
		ring[slot(to.Add(-time.Duration(i)*step), step, len(ring))] = 0
	}
}

func slot(at time.Time, step time.Duration, size int) int {
	return int(at.Unix() / int64(step/time.Second) % int64(size))
}

// Window is counts of a span, in steps of equal length.
type Window struct {
	Start  time.Time // of the first step
	Step   time.Duration
	Steps  int
	Counts map[Name][]float64 // of each step; only of what was counted within the window
	Since  time.Time          // when counting began: before, nothing is known
	last   time.Duration      // how much of the last step has passed
}

// Hour is the last hour in steps of so many seconds, at most 60: the step that is being
// counted is not among them.
func (s *Series) Hour(step int) *Window {
	return s.window(time.Second, hour/step, step, func(r *rings) []uint32 { return r.bySecond[:] })
}

// Day is the last day in steps of so many minutes, at most 60: the step that is being counted
// is the last.
func (s *Series) Day(step int) *Window {
	return s.window(time.Minute, day/step, step, func(r *rings) []uint32 { return r.byMinute[:] })
}

func (s *Series) window(unit time.Duration, steps, each int, of func(*rings) []uint32) *Window {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := unit * time.Duration(each)
	end := s.newest.Truncate(step)
	last := step
	if unit == time.Minute {
		last = s.newest.Sub(end) + time.Second
		end = end.Add(step)
	}
	w := &Window{Start: end.Add(-time.Duration(steps) * step), Step: step, Steps: steps, Counts: map[Name][]float64{},
		Since: s.since, last: last}
	// what is older has been written over
	oldest := s.newest.Truncate(unit).Add(-time.Duration(len(of(&rings{}))-1) * unit)
	for name, r := range s.counts {
		ring, sums, all := of(r), make([]float64, steps), 0.0
		for i := range sums {
			for j := range each {
				at := w.Start.Add(time.Duration(i*each+j) * unit)
				if at.Before(oldest) || at.After(s.newest) {
					continue
				}
				sums[i] += float64(ring[slot(at, unit, len(ring))])
			}
			all += sums[i]
		}
		if all > 0 {
			w.Counts[name] = sums
		}
	}
	return w
}

// Sum is how much was counted of a name within the window.
func (w *Window) Sum(name Name) (sum float64) {
	for _, n := range w.Counts[name] {
		sum += n
	}
	return sum
}

// PerSecond is the counts of a name as rates; of the last step, over what has passed of it.
// Nil: there are none.
func (w *Window) PerSecond(name Name) []float64 {
	counts := w.Counts[name]
	rates := make([]float64, len(counts))
	for i, n := range counts {
		rates[i] = n / w.Step.Seconds()
		if i == len(counts)-1 {
			rates[i] = n / w.last.Seconds()
		}
	}
	return rates
}
