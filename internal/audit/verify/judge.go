package verify

import (
	"slices"
	"time"

	"capper/internal/capping"
)

// violation is a send that a limit forbade.
type violation struct {
	user  capping.UserID
	limit *capping.Limit
	call  *call
	count int // sends that counted, the forbidden one among them, at least
}

// judge finds the sends of a user that limits forbade for certain. sends are in the order
// of time.
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

// judge is one goroutine's work on a table.
type judge struct {
	*table
	*work
	periods  periods
	unjudged int64
	found    []violation
	owed     []owed
	scratch  []*send
}

// over reports whether the limit forbade the i-th send for certain: the sends that were in
// the log for certain when the last one of those at the same time as it was judged, are
// more than Max with these.
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

// after is the instant later than which a send counts for certain when s is judged at the
// latest it can have been. Where that is in another period than the earliest, nothing is certain.
func (j *judge) after(l *capping.Limit, s *send, zone *time.Location) (capping.Instant, bool) {
	late := j.periods.rule(l, s.to, zone)
	if l.Calendar == "" {
		return late.After(s.to), true
	}
	return late.After(s.to), late.Start <= s.from
}

// mayBeOver counts roughly, from the send on backwards.
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

// certain counts those that were in the log for certain.
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

// sameTime reports whether two sends were judged by the same limits, and nobody knows which
// one first: then either was the last, and had the other in the log.
func (j *judge) sameTime(a, b *send) bool {
	return !a.exempt && a.policy == b.policy && a.world == b.world && a.segment == b.segment && a.zone == b.zone &&
		!certainlyBefore(a.call, b.call) && !certainlyBefore(b.call, a.call)
}

// remembered reports whether the send was still in the log for certain, by the retention of
// every policy that was in force since.
func (j *judge) remembered(s *send, until capping.Instant) bool {
	for i := range j.policies {
		p := &j.policies[i]
		if p.first <= until && p.last >= s.from && (p.policy == nil || until-s.from >= p.retention) {
			return false
		}
	}
	return true
}

// again reports whether the send of the same message on the same channel was recorded anew
// later: then the log had forgotten this one, and it counts once.
func (j *judge) again(sends []send, k int, until capping.Instant) bool {
	for n := k + 1; n < len(sends); n++ {
		if o := &sends[n]; o.message == sends[k].message && o.channel == sends[k].channel && o.from <= until {
			return true
		}
	}
	return false
}
