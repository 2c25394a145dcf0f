package pacing

import (
	"math"
	"slices"
)

// MostAhead is the largest number of strands of slots ahead in a log.
const MostAhead = 128

// MostReturned is the largest number of strands in a log after a return of permits has moved slots out of the line.
// MostReturned is small because each strand makes all later searches for a free slot slower.
const MostReturned = 32

// Strand is a sequence of slots ahead at regular distances, as in Run. The strands of a log may overlap.
type Strand struct {
	At      Time
	Every   int64 // microseconds; 0: all permits at At
	Burst   int64 // permits at each slot; 1 when Every is 0
	Permits int64 // 1 to MostBurst
}

// run returns the strand as a Run whose first permit has the number 0.
func (s *Strand) run() Run { return Run{At: s.At, Every: s.Every, Burst: s.Burst} }

// through returns how many permits of the strand have a slot at or before t.
func (s *Strand) through(t Time) int64 {
	r := s.run()
	return r.through(t, s.Permits)
}

// newest returns the last slot of the strand.
func (s *Strand) newest() Time {
	r := s.run()
	return r.slot(s.Permits - 1)
}

// after returns the first slot of the strand after t, or Never.
func (s *Strand) after(t Time) Time {
	n := s.through(t)
	if n == s.Permits {
		return Never
	}
	r := s.run()
	return r.slot(n)
}

// Never is a Time later than every slot.
const Never Time = math.MaxInt64

// Ahead holds the slots ahead of a log: slots later than the newest slot of the log's runs. Later permits may still get
// slots before the slots ahead.
type Ahead []Strand

// through returns how many permits of the slots ahead have a slot at or before t.
func (a Ahead) through(t Time) (n int64) {
	for i := range a {
		n += a[i].through(t)
	}
	return n
}

// after returns the first slot ahead that is later than t, or Never.
func (a Ahead) after(t Time) Time {
	first := Never
	for i := range a {
		first = min(first, a[i].after(t))
	}
	return first
}

// before returns the last slot ahead at or before t. ok is false if the log has no slot ahead at or before t.
func (a Ahead) before(t Time) (last Time, ok bool) {
	for i := range a {
		if n := a[i].through(t); n > 0 {
			r := a[i].run()
			last, ok = max(last, r.slot(n-1)), true
		}
	}
	return last, ok
}

// walk visits slots ahead in the order of time.
type walk struct {
	ahead   Ahead
	passed  int64       // permits with slots up to the instant of the walk
	strands []strandPos // by strand
}

// strandPos is the position that a walk has reached in one strand.
type strandPos struct {
	passed int64 // permits of the strand with slots up to the instant of the walk
	next   Time  // the strand's first slot after that instant, or Never
}

// begin begins a walk at the instant t. begin reuses the memory of an earlier walk.
func (w *walk) begin(a Ahead, t Time) {
	w.ahead, w.passed = a, 0
	w.strands = append(w.strands[:0], make([]strandPos, len(a))...)
	for i := range a {
		w.move(i, t)
	}
}

// to moves the walk forward to the instant t, which must not be earlier than the walk's instant.
func (w *walk) to(t Time) {
	for i := range w.ahead {
		if w.strands[i].next <= t {
			w.move(i, t)
		}
	}
}

// move moves the walk in one strand to the instant t.
func (w *walk) move(strand int, t Time) {
	s, pos := &w.ahead[strand], &w.strands[strand]
	n := s.through(t)
	w.passed += n - pos.passed
	*pos = strandPos{n, Never}
	if n < s.Permits {
		r := s.run()
		pos.next = r.slot(n)
	}
}

// next returns the first slot ahead after the walk's instant, or Never.
func (w *walk) next() Time {
	first := Never
	for i := range w.ahead {
		first = min(first, w.strands[i].next)
	}
	return first
}

// behind returns an instant before which no permit fits, because a strand alone fills every window after since. If no
// strand alone fills every window, behind returns 0.
func (a Ahead) behind(since Time, window, maximum int64) (opens Time) {
	for i := range a {
		s := &a[i]
		if s.Every > 0 && s.At <= since && s.Permits >= maximum && window/s.Every*s.Burst >= maximum {
			r := s.run()
			opens = max(opens, r.slot(s.Permits-maximum)+Time(window))
		}
	}
	return opens
}

// newest returns the last slot ahead, and false if there is no slot ahead.
func (a Ahead) newest() (Time, bool) { return a.before(Never - 1) }

// frees returns the last slot of the strand that ends first.
func (a Ahead) frees() Time {
	first := Never
	for i := range a {
		first = min(first, a[i].newest())
	}
	return first
}

// space returns how many permits at the slot can be added to the strand without a change of its regular pattern.
func (s *Strand) space(at Time) (permits int64) {
	switch newest := s.newest(); {
	case s.Every == 0 && at == s.At:
		permits = MostBurst
	case s.Every == 0 && at > s.At && at <= s.At+MostEvery:
		permits = s.Permits
	case s.Every > 0 && at == newest:
		permits = (s.Burst - s.Permits%s.Burst) % s.Burst
	case s.Every > 0 && at == newest+Time(s.Every) && s.Permits%s.Burst == 0:
		permits = s.Burst
	}
	return min(permits, MostBurst-s.Permits)
}

// add adds permits at one slot: to strands whose pattern these permits continue, or to a new strand. add returns the
// number of permits that could not be added.
func (a *Ahead) add(at Time, permits int64) (left int64) {
	for i := range *a {
		s := &(*a)[i]
		if n := min(permits, s.space(at)); n > 0 {
			if s.Every == 0 && at > s.At {
				s.Every, s.Burst = int64(at-s.At), s.Permits
			}
			s.Permits += n
			permits -= n
		}
	}
	if permits > 0 && len(*a) < MostAhead {
		*a = append(*a, Strand{at, 0, 1, permits})
		return 0
	}
	return permits
}

// Stand adds permits at one slot ahead. If the log has too many strands, the earliest slots ahead move to the runs of
// the log. No later permit can then get a slot before the moved slots.
func (l *Log) Stand(at Time, permits int64) {
	for permits = l.Ahead.add(at, permits); permits > 0; permits = l.Ahead.add(at, permits) {
		first := l.Ahead.frees()
		if first > at {
			l.Absorb(at)
			l.Append(at, 0, permits, permits)
			return
		}
		l.Absorb(first)
	}
}

// Absorb moves the slots ahead up to t to the runs of the log.
func (l *Log) Absorb(t Time) {
	for {
		next, until := -1, t // until: the first slot of the other strands
		for i := range l.Ahead {
			switch at := l.Ahead[i].At; {
			case next < 0 || at < l.Ahead[next].At:
				if next >= 0 {
					until = min(until, l.Ahead[next].At)
				}
				next = i
			default:
				until = min(until, at)
			}
		}
		if next < 0 || l.Ahead[next].At > t {
			return
		}
		l.take(next, until)
	}
}

// take moves the strand's slots up to t to the runs of the log.
func (l *Log) take(strand int, t Time) {
	s := &l.Ahead[strand]
	n := s.through(t)
	if s.Every == 0 || n <= s.Burst {
		l.Append(s.At, 0, n, n)
	} else {
		l.Append(s.At, s.Every, s.Burst, n)
	}
	if n == s.Permits {
		l.Ahead = slices.Delete(l.Ahead, strand, strand+1)
		return
	}
	s.At, s.Permits = s.after(t), s.Permits-n
	if s.Permits <= s.Burst {
		s.Every, s.Burst = 0, 1
	}
}
