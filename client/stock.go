package client

import (
	"time"

	"capper/client/api"
)

// staleAfter is the maximum age of a slot before its permit is discarded, unless a limit has a shorter window. A
// client that was suspended must not send a burst with old permits, because other senders have received permits
// since.
const staleAfter = time.Second

// stock holds granted and unused permits in the order of their grants.
type stock struct {
	runs    []stockRun
	permits int           // permits of all runs
	keep    time.Duration // maximum useful age of a slot
}

// stockRun is a run of permits with regular slots.
type stockRun struct {
	at      time.Time // slot of the first, on the monotonic clock
	every   time.Duration
	permits int
}

// due returns how many permits of the run have a slot that is not later than now.
func (r *stockRun) due(now time.Time) int {
	switch passed := now.Sub(r.at); {
	case passed < 0:
		return 0
	case r.every <= 0:
		return r.permits
	default:
		return int(min(int64(r.permits), int64(passed/r.every)+1))
	}
}

// cut removes the first n permits from the run and returns the slot of the last one.
func (r *stockRun) cut(n int) (slot time.Time) {
	slot = r.at.Add(time.Duration(n-1) * r.every)
	r.at, r.permits = slot.Add(r.every), r.permits-n
	return slot
}

// add puts the permits of an answer into the stock. Waits count from the arrival of the answer. In the answer to a
// repeated call, past slots have a wait of 0 and may be as old as the request.
func (s *stock) add(answer *api.Permits, since, arrived time.Time) {
	s.keep = staleAfter
	for _, pacer := range answer.Pacers {
		if window, err := time.ParseDuration(pacer.Window); err == nil && window > 0 {
			s.keep = min(s.keep, window)
		}
	}
	for _, slot := range answer.Slots {
		if slot.Permits < 1 {
			continue
		}
		at := arrived.Add(time.Duration(slot.WaitMS))
		if answer.Replayed && slot.WaitMS <= 0 {
			at = since
		}
		s.permits += slot.Permits
		s.runs = append(s.runs, stockRun{at, time.Duration(slot.EveryMS), slot.Permits})
	}
}

// putBack returns n permits to the stock, of which the latest slot was at. They are used next.
func (s *stock) putBack(n int, at time.Time) {
	if n > 0 {
		s.permits += n
		s.runs = append([]stockRun{{at: at, permits: n}}, s.runs...)
	}
}

// take removes up to n permits whose slot has come, and returns their number and the latest slot.
func (s *stock) take(now time.Time, n int) (taken int, latest time.Time) {
	for taken < n && len(s.runs) > 0 {
		k := min(s.runs[0].due(now), n-taken)
		if k == 0 {
			break
		}
		latest = s.cut(k)
		taken += k
	}
	return taken, latest
}

// drop discards permits that are too old.
func (s *stock) drop(now time.Time) {
	for len(s.runs) > 0 {
		old := s.runs[0].due(now.Add(-s.keep - 1))
		if old == 0 {
			return
		}
		s.cut(old)
	}
}

// cut removes n permits from the first run and returns the slot of the last one.
func (s *stock) cut(n int) (slot time.Time) {
	slot = s.runs[0].cut(n)
	s.permits -= n
	if s.runs[0].permits == 0 {
		s.runs = s.runs[1:]
	}
	return slot
}

// next returns the slot of the next permit. The stock must not be empty.
func (s *stock) next() time.Time { return s.runs[0].at }

// last returns the slot of the last permit, or the zero time when the stock is empty.
func (s *stock) last() time.Time {
	if len(s.runs) == 0 {
		return time.Time{}
	}
	r := s.runs[len(s.runs)-1]
	return r.at.Add(time.Duration(r.permits-1) * r.every)
}
