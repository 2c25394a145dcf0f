package pacing

import (
	"math"
	"slices"
)

// MostAhead is the largest number of strands (series of slots at equal distances) that a pacer's log may hold.
const MostAhead = 128

// MostReturned is the largest number of strands (series of slots at equal distances) that a return of permits may leave
// in a log. MostReturned is small because each strand (series of slots) in a log slows down all later searches for a
// free slot.
const MostReturned = 64

// Strand is a series of slots at equal distances. Later permits may still get slots before and between the slots of a
// Strand. The strands (series of slots) of a log may overlap in time.
type Strand struct {
	At      Time
	Every   int64 // microseconds; 0: all permits at At
	Burst   int64 // permits at each slot; 1 when Every is 0
	Permits int64 // 1 to MostBurst
}

// The method "run" converts the strand (series of slots at equal distances) to a Run whose first permit has the number
// 0.
func (s *Strand) run() Run { return Run{At: s.At, Every: s.Every, Burst: s.Burst} }

// The method "through" returns the number of permits in this strand (series of slots) with slots at or before t.
func (s *Strand) through(t Time) int64 {
	r := s.run()
	return r.through(t, s.Permits)
}

// The method "newest" returns the last slot of the strand (series of slots).
func (s *Strand) newest() Time {
	r := s.run()
	return r.slot(s.Permits - 1)
}

// The method "after" returns the first slot in this series of slots (strand) that is later than t, or Never.
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

// Ahead holds granted slots of a log, as strands (series of slots). Later permits may still get slots before the slots
// in Ahead. All slots in Ahead are at or after the newest slot in Log.Runs.
type Ahead []Strand

// The method "through" returns the number of permits in all strands (series of slots) with slots at or before t.
func (a Ahead) through(t Time) (n int64) {
	for i := range a {
		n += a[i].through(t)
	}
	return n
}

// The method "after" returns the first slot that is later than t in any of the strands (series of slots). If no strand
// (series of slots) has a slot later than t, "after" returns Never.
func (a Ahead) after(t Time) Time {
	first := Never
	for i := range a {
		first = min(first, a[i].after(t))
	}
	return first
}

// The method "before" returns the last slot that is not later than t in any of the strands (series of slots). The
// result "ok" of the method "before" is false if no strand (series of slots) has a slot at or before t.
func (a Ahead) before(t Time) (last Time, ok bool) {
	for i := range a {
		if n := a[i].through(t); n > 0 {
			r := a[i].run()
			last, ok = max(last, r.slot(n-1)), true
		}
	}
	return last, ok
}

// The type "walk" moves an instant forward in time, and counts the permits of all strands (series of slots) up to that
// instant.
type walk struct {
	ahead   Ahead
	passed  int64       // permits with slots up to the instant of the walk
	strands []strandPos // by strand
}

// strandPos is the position of a walk in one strand (series of slots): the number of passed permits, and the next slot.
type strandPos struct {
	passed int64 // permits of the strand with slots up to the walk's instant
	next   Time  // the strand's first slot after that instant, or Never
}

// The method "begin" begins a walk over all strands (series of slots) at the instant t. The method "begin" reuses the
// memory of the previous walk in w.
func (w *walk) begin(a Ahead, t Time) {
	w.ahead, w.passed = a, 0
	w.strands = append(w.strands[:0], make([]strandPos, len(a))...)
	for i := range a {
		w.move(i, t)
	}
}

// The method "to" moves the walk forward to the instant t. The instant t must not be before the instant that the walk
// has reached.
func (w *walk) to(t Time) {
	for i := range w.ahead {
		if w.strands[i].next <= t {
			w.move(i, t)
		}
	}
}

// The method "move" updates the position of the walk in one strand (series of slots) when the walk moves to the instant
// t.
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

// The method "next" returns the first slot of any strand (series of slots) after the instant that the walk has reached,
// or Never.
func (w *walk) next() Time {
	first := Never
	for i := range w.ahead {
		first = min(first, w.strands[i].next)
	}
	return first
}

// The method "behind" looks for a strand (series of slots) that alone fills all windows of a limit after the time
// "since". The method "behind" returns the first instant at which the limit may allow a further permit despite this
// strand (series of slots). If no strand (series of slots) alone fills all windows of the limit after "since", "behind"
// returns 0.
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

// The method "newest" returns the last slot of all strands (series of slots), and false if there is no strand.
func (a Ahead) newest() (Time, bool) { return a.before(Never - 1) }

// The method "frees" returns the last slot of the strand (series of slots) that ends first.
func (a Ahead) frees() Time {
	first := Never
	for i := range a {
		first = min(first, a[i].newest())
	}
	return first
}

// The method "space" returns the number of permits with the slot "at" that can join this strand (series of slots at
// equal distances).
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

// The method "add" adds permits with one slot to strands (series of slots) that continue with that slot, or to a new
// strand. The method "add" returns the number of permits that it could not add.
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

// The method Stand adds permits with one slot to Log.Ahead, so that later permits may still get free slots before this
// slot. If the log would have too many strands (series of slots), Stand moves their earliest slots to Log.Runs. No
// later permit can get a slot before the slots that Stand moved to Log.Runs.
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

// The method Absorb moves the slots up to t from Log.Ahead (slots with free slots before them) to Log.Runs. No later
// permit can get a slot before the moved slots.
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

// The method "take" moves the slots up to t of one strand (series of slots) from Log.Ahead (slots with free slots
// before them) to Log.Runs.
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
