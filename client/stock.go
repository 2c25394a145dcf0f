package client

import (
	"maps"
	"slices"
	"time"
)

// The type stock holds the unused permits of a Pacer. A later response may have permits with earlier slots (start
// times), so the Pacer uses the permit with the earliest slot first.
type stock struct {
	runs    []stockRun // in the order of at
	permits int        // permits of all runs
}

// stockRun is a series of permits whose slots (start times) have equal distances. The service granted a permit at some
// time between the call and the response. The Pacer therefore knows the slot of the permit only roughly. Before using a
// permit, the Pacer waits until the latest time at which the slot of the permit can be. For the age of a permit, the
// Pacer assumes the earliest time at which the slot of the permit can be.
type stockRun struct {
	at      time.Time // latest possible slot of the first permit, on the monotonic clock
	every   time.Duration
	permits int
	keep    time.Duration // time for which a permit may be used, from "at"
	of      *asking       // request that got the permits; nil: the slots are past
}

// The method "due" returns the number of permits of the run (permits with equal distances) whose slots (start times)
// are not later than now.
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

// The method "last" returns the slot (start time) of the last permit of the run (permits with equal distances).
func (r *stockRun) last() time.Time { return r.at.Add(time.Duration(r.permits-1) * r.every) }

// The method "cut" removes the first n permits from the run (permits with equal distances) and returns the slot of the
// last removed permit.
func (r *stockRun) cut(n int) (slot time.Time) {
	slot = r.at.Add(time.Duration(n-1) * r.every)
	r.at, r.permits = slot.Add(r.every), r.permits-n
	return slot
}

// The method "add" puts the permits of a response into the stock (the Pacer's unused permits). The wait for a permit
// counts from the arrival of the response, and the age of a permit counts from the start of the client's attempt. In
// the response to a repeated call, a permit whose slot (start time) has passed has a wait of 0. A permit whose slot
// (start time) has passed may be old: the service may have granted the permit at the first attempt of the call. The
// Pacer may use a permit with a wait of 0 until the duration "inTime" has passed since the first attempt of the call.
func (s *stock) add(answer *timely, of *asking) {
	for _, slot := range answer.Slots {
		if slot.Permits < 1 {
			continue
		}
		at, keep := answer.arrived.Add(time.Duration(slot.WaitMS)), answer.usable-answer.trip()
		if answer.Replayed && slot.WaitMS <= 0 {
			at, keep = of.since, answer.inTime
		}
		s.permits += slot.Permits
		s.runs = append(s.runs, stockRun{at, time.Duration(slot.EveryMS), slot.Permits, keep, of})
	}
	s.sort()
}

// The method "lasts" returns, for each request with unused permits, the slot (start time) of the last permit.
func (s *stock) lasts() map[*asking]time.Time {
	lasts := map[*asking]time.Time{}
	for i := range s.runs {
		if r := &s.runs[i]; r.of != nil && r.last().After(lasts[r.of]) {
			lasts[r.of] = r.last()
		}
	}
	return lasts
}

// The method "remove" removes the permits of the given request from the Pacer's unused permits.
func (s *stock) remove(of *asking) {
	s.runs = slices.DeleteFunc(s.runs, func(r stockRun) bool {
		if r.of == of {
			s.permits -= r.permits
		}
		return r.of == of
	})
}

// The method "lapse" removes unused permits whose lease (time limit for unused permits) ends before their slot, because
// the service takes such permits back.
func (s *stock) lapse(now time.Time) {
	left := s.runs[:0]
	for _, run := range s.runs {
		if run.of != nil && run.of.lease.lapsed(now, run.last()) {
			kept := run.due(run.of.lease.ends)
			s.permits -= run.permits - kept
			run.permits = kept
		}
		if run.permits > 0 {
			left = append(left, run)
		}
	}
	s.runs = left
}

// The method "sort" sorts the runs of unused permits by the slot (start time) of their first permit.
func (s *stock) sort() {
	slices.SortStableFunc(s.runs, func(a, b stockRun) int { return a.at.Compare(b.at) })
}

// putBack adds n permits to the Pacer's unused permits again. The argument "at" of putBack is the latest slot (start
// time) of the n permits. The next callers get the permits from putBack before all other permits.
func (s *stock) putBack(n int, at time.Time, keep time.Duration) {
	if n > 0 {
		s.permits += n
		s.runs = append([]stockRun{{at: at, permits: n, keep: keep}}, s.runs...)
		s.sort()
	}
}

// The type "taken" describes permits that the Pacer took together from the stock (the Pacer's unused permits): their
// number, their latest slot, and how long they may be used.
type taken struct {
	permits int
	latest  time.Time     // latest slot
	keep    time.Duration // time for which the permits may be used, from "latest"
	until   time.Time     // time until which all of them may be used
}

// The method "take" finds permits in the Pacer's stock whose slot (start time) has come, and removes up to n of them.
func (s *stock) take(now time.Time, n int) (t taken) {
	for t.permits < n && len(s.runs) > 0 {
		upTo := now
		if len(s.runs) > 1 && s.runs[1].at.Before(now) {
			upTo = s.runs[1].at
		}
		k := min(s.runs[0].due(upTo), n-t.permits)
		if k == 0 {
			break
		}
		t.keep = s.runs[0].keep
		if until := s.next().Add(t.keep); t.until.IsZero() || until.Before(t.until) {
			t.until = until
		}
		t.latest = s.cut(k)
		t.permits += k
	}
	return t
}

// The method "ahead" removes all unused permits from the Pacer. For each request that has a permit with a slot (start
// time) after the time now, ahead() returns the number of its unused permits.
func (s *stock) ahead(now time.Time) map[*asking]int {
	permits, ahead := map[*asking]int{}, map[*asking]bool{}
	for i := range s.runs {
		r := &s.runs[i]
		permits[r.of] += r.permits
		ahead[r.of] = ahead[r.of] || r.of != nil && r.due(now) < r.permits
	}
	maps.DeleteFunc(permits, func(of *asking, _ int) bool { return !ahead[of] })
	*s = stock{}
	return permits
}

// The method "drop" discards unused permits that are too old, and returns the number of discarded permits. The slots
// (start times) of discarded permits are past, so the Pacer cannot give these permits back to the service.
func (s *stock) drop(now time.Time) (dropped int) {
	left := s.runs[:0]
	for _, run := range s.runs {
		if old := run.due(now.Add(-run.keep - 1)); old > 0 {
			run.cut(old)
			dropped += old
		}
		if run.permits > 0 {
			left = append(left, run)
		}
	}
	s.runs = left
	s.sort()
	s.permits -= dropped
	return dropped
}

// The method "cut" removes n permits from the first run of the Pacer's unused permits, and returns the slot (start
// time) of the last removed permit.
func (s *stock) cut(n int) (slot time.Time) {
	slot = s.runs[0].cut(n)
	s.permits -= n
	if s.runs[0].permits == 0 {
		s.runs = s.runs[1:]
	}
	for i := 1; i < len(s.runs) && s.runs[i].at.Before(s.runs[i-1].at); i++ {
		s.runs[i-1], s.runs[i] = s.runs[i], s.runs[i-1]
	}
	return slot
}

// The method "next" returns the slot (start time) of the next unused permit. The method "next" must not be called for
// an empty stock.
func (s *stock) next() time.Time { return s.runs[0].at }

// The method "last" returns the slot (start time) of the last unused permit, or the zero time if there is none.
func (s *stock) last() (last time.Time) {
	for _, r := range s.runs {
		if r.last().After(last) {
			last = r.last()
		}
	}
	return last
}
