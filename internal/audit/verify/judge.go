package verify

import (
	"slices"
	"time"

	"capper/internal/capping"
)

// A violation is a recorded send that a limit certainly forbade.
type violation struct {
	user  capping.UserID
	limit *capping.Limit
	call  *call
	count int // minimum number of sends that counted, including the forbidden one
}

// The method judge finds the sends of a user that limits certainly forbade, and adds these sends to the list of
// violations. The argument "sends" of the method judge must be in the order of time.
func (j *judge) judge(user capping.UserID, sends []send) {
	for i := range sends {
		s := &sends[i]
		if s.exempt {
			continue
		}
		limits, known := j.limits(s)
		if !known {
			j.unjudged++
			continue
		}
		for k := range limits {
			if l := &limits[k]; !l.Shadow && l.AppliesTo(s.channel) && j.over(sends, i, l) {
				j.found = append(j.found, violation{user, l, s.call, l.Max + 1})
			}
		}
	}
}

// A judge is the state of one goroutine that checks recorded sends against the limits.
type judge struct {
	*table
	*work
	periods  periods
	unjudged int64
	found    []violation
	expected []expectedSend
	scratch  []*send
}

// The method "over" reports whether the limit certainly forbade the send with the index i. A limit certainly forbade a
// send if more than Max sends were certainly in the user's log, including this send and sends at the same time.
func (j *judge) over(sends []send, i int, l *capping.Limit) bool {
	s := &sends[i]
	if len(sends) <= l.Max {
		return false
	}
	zone, known := j.location(s)
	if l.UserZone && l.Calendar != "" && !known {
		return false
	}
	after, ok := j.after(l, s, zone)
	if !ok || !j.mayBeOver(sends, i, l, after) {
		return false
	}
	return j.certain(sends, i, l, after)
}

// The method "after" returns a time: for the send s, the limit certainly counts every earlier send after the returned
// time. The second result is false if there is no such time, because the send s may lie in either of two calendar
// periods.
func (j *judge) after(l *capping.Limit, s *send, zone *time.Location) (capping.Instant, bool) {
	late := j.periods.rule(l, s.to, zone)
	if l.Calendar == "" {
		return late.After(s.to), true
	}
	return late.After(s.to), late.Start <= s.from
}

// mayBeOver is a fast estimate of whether the send with the index i exceeds the limit. mayBeOver returns true for every
// send that certainly exceeds the limit, and for some other sends.
func (j *judge) mayBeOver(sends []send, i int, l *capping.Limit, after capping.Instant) bool {
	left := l.Max
	for k := range sends {
		if k == i {
			continue
		}
		if o := &sends[k]; o.from > after && o.from <= sends[i].to && l.Channels.Has(o.channel) {
			if left--; left <= 0 {
				return true
			}
		}
	}
	return left <= 0
}

// The method "certain" counts the sends that were certainly in the user's log, and reports whether their number was
// above the maximum of the limit.
func (j *judge) certain(sends []send, i int, l *capping.Limit, after capping.Instant) bool {
	s := &sends[i]
	together := append(j.scratch[:0], s)
	first, last := s.from, s.to
	for k := range sends {
		if o := &sends[k]; k != i && j.sameTime(o, s) && l.Channels.Has(o.channel) && o.from > after {
			together = append(together, o)
			first, last = min(first, o.from), max(last, o.to)
		}
	}
	j.scratch = together
	after += last - s.to
	if l.Calendar != "" && len(together) > 1 {
		zone, _ := j.location(s)
		if late := j.periods.rule(l, last, zone); late.Start > first {
			return false
		}
	}
	count := 0
	for _, o := range together {
		if o.gone > last && o.from > after && (o == s || !j.unsureSince(o, last)) {
			count++
		}
	}
	for k := range sends {
		o := &sends[k]
		before := k != i && l.Channels.Has(o.channel) && o.from > after && o.gone > last &&
			!slices.ContainsFunc(together, func(t *send) bool { return t == o || !certainlyBefore(o.call, t.call) })
		if before && j.remembered(o, last) && !j.again(sends, k, last) && !j.unsureSince(o, last) {
			count++
		}
	}
	return count > l.Max
}

// sameTime reports whether the same limits apply to two sends whose order is unknown. If sameTime returns true, each of
// the two sends may have exceeded the limit.
func (j *judge) sameTime(a, b *send) bool {
	return !a.exempt && a.policy == b.policy && a.world == b.world && a.segment == b.segment && a.zone == b.zone &&
		!certainlyBefore(a.call, b.call) && !certainlyBefore(b.call, a.call)
}

// The method "remembered" reports whether a send was certainly still in the user's log at the time "until". A send was
// certainly in the log if every policy in force since the send keeps sends long enough.
func (j *judge) remembered(s *send, until capping.Instant) bool {
	for i := range j.policies {
		p := &j.policies[i]
		if p.first <= until && p.last >= s.from && (p.policy == nil || until-s.from >= p.retention) {
			return false
		}
	}
	return true
}

// The method "again" reports whether a later call recorded a send of the same message on the same channel. If a later
// call recorded the send again, the user's log had lost the first send, and the two sends count as one.
func (j *judge) again(sends []send, k int, until capping.Instant) bool {
	for n := k + 1; n < len(sends); n++ {
		if o := &sends[n]; o.message == sends[k].message && o.channel == sends[k].channel && o.from <= until {
			return true
		}
	}
	return false
}
