package console

import (
	"context"
	"sync"
	"time"
)

// A Name identifies a counter in a Series by its kind and, for example, by a limit or a pacer.
type Name struct {
	Kind Kind
	Of   string // limit of Denied and Shadow; pacer of Granted, refused and failed; otherwise ""
}

// A Kind is the kind of a counter in a Series, such as allowed users.
type Kind string

// These constants are the kinds of counters in a Series. The first three kinds of counters count users in filter
// calls that record sends.
const (
	Allowed     Kind = "allowed" // users whose send the call recorded
	Denied      Kind = "denied"
	Unavailable Kind = "unavailable"
	Shadow      Kind = "shadow" // allowed users whom a shadow limit would have denied

	Granted Kind = "granted" // permits
	refused Kind = "refused" // permits
	failed  Kind = "failed"  // calls for permits
)

// Totals maps each counter to its value since the start of the process.
type Totals map[Name]float64

// A Series stores slightly longer periods than an hour and a day, so that the first step on a chart is complete. The
// constant maxNames is the maximum number of counters in a Series.
const (
	hour     = 3600
	seconds  = hour + 60
	day      = 1440
	minutes  = day + 60
	maxNames = 200
)

// A Series holds the counts of decisions and permits of this process over the last day, for the charts of the console.
type Series struct {
	mu     sync.Mutex
	since  time.Time // time at which the Series began to count
	newest time.Time // second for which the Series counts now
	before Totals
	counts map[Name]*rings
}

// The type "rings" holds the counts of one counter in two ring buffers: one by second and one by minute.
type rings struct {
	bySecond [seconds]uint32
	byMinute [minutes]uint32
}

// NewSeries returns an empty Series, whose counts begin at the time now.
func NewSeries(now time.Time) *Series {
	return &Series{since: now, newest: now.Truncate(time.Second), before: Totals{}, counts: map[Name]*rings{}}
}

// Run calls the function "totals" once a second until ctx ends, and adds the increase of each counter to the Series.
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

// Observe adds the increase of each counter since the last call of Observe to the Series. If a counter has decreased,
// Observe assumes that the counter has restarted at 0.
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

// The method turn moves the Series on to the second in the argument "to", and clears the ring buffer entries up to this
// second. Without the clearing, the entries would contain counts of an earlier hour or day. If the clock was set back,
// the Series does not advance until the clock shows a later time again.
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

// A Window holds the counts of a Series over a period, in steps of equal length.
type Window struct {
	Start  time.Time // beginning of the first step
	Step   time.Duration
	Steps  int
	Counts map[Name][]float64 // counts by step, for the names that were counted in the period
	Since  time.Time          // time at which the Series began to count; earlier counts are unknown
	last   time.Duration      // elapsed time of the last step
}

// Hour returns the counts of the last hour, in steps of the given number of seconds. A step has at most 60 seconds.
// The Window that Hour returns does not contain the current, incomplete step.
func (s *Series) Hour(step int) *Window {
	return s.window(time.Second, hour/step, step, func(r *rings) []uint32 { return r.bySecond[:] })
}

// Day returns the counts of the last day, in steps of the given number of minutes. A step has at most 60 minutes. The
// last step of the Window that Day returns is the current, incomplete step.
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
	// newer values have overwritten older values
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

// Sum returns the increase of a counter over the whole period of the Window.
func (w *Window) Sum(name Name) (sum float64) {
	for _, n := range w.Counts[name] {
		sum += n
	}
	return sum
}

// PerSecond returns the counts of a counter as rates per second. For the last step, PerSecond divides only by the
// elapsed time of the step. If the Window has no values of the counter, PerSecond returns nil.
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
