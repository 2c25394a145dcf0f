package pacing

import "time"

// Returned is the result of a return of permits: the permits of a request that went back to the pacers.
type Returned struct {
	At      Time
	Known   bool      // the store remembers the request
	More    bool      // the same as Grant.More: the request may have more parts
	Kept    int       // number of permits that the request keeps
	Permits int       // number of permits that were returned
	Runs    []WaitRun // slots of the returned permits
	Targets []int     // by target: number of slots that were removed from its log
}

// GiveBack removes the slots of returned permits from the stored grant and from the targets' logs. GiveBack keeps the
// first "used" permits, and all permits whose slots are not in the future. An element of the argument "logs" is nil if
// the store removed the log of the target after the grant. If the store removed a log after the grant, the log has no
// slot of the grant any more.
func (r *Remembered) GiveBack(now Time, ask *Ask, used int, logs []*Log) Returned {
	kept := min(r.Total, max(int64(used), r.dueBy(now)))
	result := r.Back(now, int(kept))
	result.Targets = make([]int, len(logs))
	back := r.from(kept)
	for i, log := range logs {
		if log != nil {
			result.Targets[i] = int(log.Return(back, ask.Targets[i].Limits))
		}
	}
	r.cut(kept)
	return result
}

// The method Back describes a return of all permits of the grant except the first "kept" permits, without changing the
// grant. In the result of Back, the field Targets is empty.
func (r *Remembered) Back(now Time, kept int) Returned {
	result := Returned{At: now, Known: true, More: r.More, Kept: kept, Permits: int(r.Total) - kept}
	for _, s := range r.from(int64(kept)) {
		given := Log{}
		given.Append(s.At, s.Every, s.each(), s.Permits)
		result.Runs = append(result.Runs, given.WaitRuns(now)...)
	}
	return result
}

// AskedAt returns an instant at or before the time of the request: the newest granted slot minus the longest wait that
// the call allowed.
func (r *Remembered) AskedAt(longest time.Duration) Time {
	newest, _ := r.newest()
	return newest.Add(-longest)
}

// dueBy returns the number of permits in Log.Runs with slots at or before now. The sends of permits with past slots may
// have started.
func (l *Log) dueBy(now Time) (permits int64) {
	for i := range l.Runs {
		permits += l.Runs[i].through(now, l.end(i)-l.Runs[i].First)
	}
	return permits
}

// The method "from" returns the slots of the permits in Log.Runs that have the given number or a higher number.
func (l *Log) from(permit int64) (slots []Strand) {
	for i := range l.Runs {
		r := &l.Runs[i]
		if l.end(i) <= permit {
			continue
		}
		k := max(0, permit-r.First)
		all := Strand{r.At, r.Every, r.Burst, l.end(i) - r.First}
		slot := k / all.each()
		if begun := k % all.each(); begun > 0 {
			slots = append(slots, Strand{r.slot(k), 0, 1, all.count(slot) - begun})
			slot++
		}
		slots = all.part(slots, slot, all.slots())
	}
	return slots
}

// The method "cut" removes the permits with the given number or a higher number from Log.Runs.
func (l *Log) cut(permit int64) {
	n := len(l.Runs)
	for n > 0 && l.Runs[n-1].First >= permit {
		n--
	}
	l.Runs, l.Total = l.Runs[:n], min(l.Total, permit)
}

// The function Exact reports whether, in a log with these limits, Merge never moves a permit to a later slot.
func Exact(limits []Limit) bool {
	tiers := tiersOf(limits)
	return tiers[len(tiers)-1].group == 1
}

// These constants limit the work of Log.Return, which removes returned slots from a log. If a return exceeds a limit,
// some of the returned slots stay in the log, or later permits cannot get the freed slots.
const (
	MostMeets  = 20_000       // comparisons of runs
	MostCommon = 64           // slots that are removed at once, if each removal divides a strand
	MostLine   = 2 * MostRuns // runs in Log.Runs after the return
	MostApart  = 256          // runs from the first returned slot on, all of which become slots ahead
	MostOdd    = 4            // slots that are compared with a strand of another distance
)

// The method Return removes the slots of returned permits, which must be in order, from the log. The result of Return
// is the number of permits that the log had and no longer has. From the first removed slot on, Return moves slots from
// Log.Runs to Log.Ahead. Later permits can then get the freed slots before them. Slots that would need more than
// MostReturned strands (series of slots) stay in Log.Runs. If the limits are not Exact, Merge may have moved permits to
// slots with several permits. If the limits are not Exact (Merge may have moved permits), all slots up to the last slot
// with several permits also stay in Log.Runs. After Return, Log.Runs may have so few permits that a limit again counts
// slots that the log has dropped. A limit counts each dropped slot as if it had the time of the log's oldest slot.
func (l *Log) Return(slots []Strand, limits []Limit) (removed int64) {
	if len(slots) == 0 {
		return 0
	}
	before, line := l.lineFrom(slots[0].At)
	exact := Exact(limits)
	if len(line) > 0 && !l.knows(&before, limits) {
		before.Runs = append([]Run{l.dropped(limits)}, before.Runs...)
	}
	if l.returnApart(before, line, slots, exact, &removed) {
		return removed
	}
	left, unfound, n := removeAll(line, slots, MostLine, false)
	ahead, _, more := removeAll(l.Ahead, unfound, MostAhead, true)
	if n > 0 {
		first := len(left)
		for first > 0 && len(left)-first < MostReturned-len(ahead) && left[first-1].moves(exact) {
			first--
		}
		if len(before.Runs)+first > MostLine {
			return 0
		}
		for _, s := range left[:first] {
			before.Runs = append(before.Runs, Run{s.At, s.Every, s.Burst, before.Total})
			before.Total += s.Permits
		}
		l.Runs, l.Total = before.Runs, before.Total
		ahead = append(left[first:len(left):len(left)], ahead...)
	}
	l.Ahead = ahead
	return n + more
}

// The method "knows" reports whether the log still has every slot that the limits count when only the slots in "before"
// are left.
func (l *Log) knows(before *Log, limits []Limit) bool {
	sees := SeenBy(limits)
	newest, some := before.newest()
	return l.first() == 0 || before.Total-l.first() >= int64(sees.Max) ||
		some && l.Runs[0].At+Time(sees.Window.Microseconds()) <= newest
}

// The method "dropped" returns a run of permits that stands for the permits that the log has dropped. The run from
// "dropped" has at most as many permits as the limits count. All permits of the returned run get the slot of the oldest
// permit in the log, because no dropped slot was later.
func (l *Log) dropped(limits []Limit) Run {
	permits := min(l.first(), int64(SeenBy(limits).Max))
	return Run{At: l.Runs[0].At, Burst: 1, First: l.first() - permits}
}

// SeenBy returns a Limit with the largest Max and the longest Window of the limits.
func SeenBy(limits []Limit) (all Limit) {
	for _, limit := range limits {
		all.Max, all.Window = max(all.Max, limit.Max), max(all.Window, limit.Window)
	}
	return all
}

// If all slots from the first returned slot on can move from Log.Runs to Log.Ahead, returnApart does the work of
// Return. If the remaining slots need too many strands (series of slots), or if one of the slots must not move,
// returnApart changes nothing and returns false.
func (l *Log) returnApart(before Log, line, slots []Strand, exact bool, removed *int64) bool {
	if len(line) > MostApart {
		return false
	}
	for i := range line {
		if !line[i].moves(exact) {
			return false
		}
	}
	left, unfound, n := removeAll(line, slots, 2*MostApart, true)
	left = weave(left)
	ahead, _, more := removeAll(l.Ahead, unfound, MostAhead, true)
	if n == 0 || len(left)+len(ahead) > MostReturned {
		return false
	}
	l.Runs, l.Total, l.Ahead = before.Runs, before.Total, append(left, ahead...)
	*removed = n + more
	return true
}

// The function "weave" reduces the number of strands (series of slots) if equal strands follow at equal distances, such
// as the bursts of windows that a rate fills. The first strand (series of slots) from weave has the first slot of each
// burst, the next strand has the second slots, and so on. The function "weave" makes an exchange only if the exchange
// reduces the number of strands (series of slots).
func weave(strands []Strand) (woven []Strand) {
	for i := 0; i < len(strands); {
		s := strands[i]
		n := alike(strands[i:])
		if k := s.slots(); int64(n) <= k || s.Permits != k*s.each() || int64(n)*s.each() > MostBurst {
			woven = append(woven, strands[i:i+max(1, n-1)]...)
			i += max(1, n-1) // the last one may begin other equal distances
			continue
		}
		every := int64(strands[i+1].At - s.At)
		for k := range s.slots() {
			woven = append(woven, Strand{s.At + Time(k*s.Every), every, s.each(), int64(n) * s.each()})
		}
		i += n
	}
	return woven
}

// The function "alike" returns the number of strands (series of slots), from the first strand on, that are equal and
// begin at equal distances.
func alike(strands []Strand) (n int) {
	for n = 1; n < len(strands); n++ {
		s, before := strands[n], strands[n-1]
		every := s.At - before.At
		if s.Every != before.Every || s.Burst != before.Burst || s.Permits != before.Permits || every <= 0 ||
			every > MostEvery || every != strands[1].At-strands[0].At {
			break
		}
	}
	return n
}

// lineFrom splits the slots in Log.Runs into the slots before t and the slots at t or later.
func (l *Log) lineFrom(t Time) (before Log, line []Strand) {
	first := len(l.Runs)
	for first > 0 {
		r := &l.Runs[first-1]
		if r.slot(l.end(first-1)-1-r.First) < t {
			break
		}
		first--
	}
	before.Total = l.Total
	if first < len(l.Runs) {
		before.Total = l.Runs[first].First
	}
	before.Runs = append(before.Runs, l.Runs[:first]...)
	for i := first; i < len(l.Runs); i++ {
		r := &l.Runs[i]
		all, k := Strand{r.At, r.Every, r.Burst, l.end(i) - r.First}, int64(0)
		if k = all.through(t - 1); k > 0 { // only in the first run
			before.Runs, before.Total = append(before.Runs, *r), r.First+k
			if last := &before.Runs[first]; k <= last.Burst {
				last.Every, last.Burst = 0, 1
			}
		}
		line = all.part(line, k/all.each(), all.slots())
	}
	return before, line
}

// The method "moves" reports whether Return may move this series of slots (strand) from Log.Runs to Log.Ahead.
func (s *Strand) moves(exact bool) bool {
	return s.Permits <= MostBurst && (exact || s.each() == 1)
}

// The method "each" returns the number of permits at each slot of the strand (series of slots). The last slot of the
// strand (series of slots) may have fewer permits.
func (s *Strand) each() int64 {
	if s.Every == 0 {
		return s.Permits
	}
	return s.Burst
}

func (s *Strand) slots() int64 { return (s.Permits-1)/s.each() + 1 }

// The method "count" returns the number of permits at the slot with the index i of the strand (series of slots).
func (s *Strand) count(i int64) int64 { return min(s.each(), s.Permits-i*s.each()) }

// The method "index" returns the index of the slot at the instant t in the strand (series of slots). The strand (series
// of slots) must have a slot at t.
func (s *Strand) index(t Time) int64 {
	if s.Every == 0 {
		return 0
	}
	return int64(t-s.At) / s.Every
}

// The method "part" appends the slots with the numbers from i to j-1 of the strand (series of slots) to dst.
func (s *Strand) part(dst []Strand, i, j int64) []Strand {
	return appendStrand(dst, s.At+Time(i*s.Every), s.Every, s.each(), min(j*s.each(), s.Permits)-i*s.each())
}

// appendStrand appends a strand (series of slots) to dst if the strand has at least one permit.
func appendStrand(dst []Strand, at Time, every, burst, permits int64) []Strand {
	if permits <= 0 {
		return dst
	}
	if permits <= burst {
		every, burst = 0, 1
	}
	return append(dst, Strand{at, every, burst, permits})
}

// removeAll removes the given slots from strands (series of slots at equal distances). The function removeAll returns
// the remaining strands (series of slots), the slots that it did not remove, and the number of removed permits. If the
// argument "overlap" is false, the strands (series of slots) must be in order, and stay in order. The function
// removeAll does not remove a slot if more than "most" strands (series of slots) would remain.
func removeAll(strands, slots []Strand, most int, overlap bool) (left, unfound []Strand, removed int64) {
	left, from, meets := append(left, strands...), 0, 0
	for queue := append([]Strand(nil), slots...); len(queue) > 0; {
		s := queue[0]
		queue = queue[1:]
		for !overlap && from < len(left) && left[from].newest() < s.At {
			from++
		}
		found := false
		for i := from; i < len(left) && meets < MostMeets; i++ {
			p := left[i]
			if !overlap && p.At > s.newest() {
				break
			}
			meets++
			at, every, n := p.common(&s)
			if n == 0 {
				continue
			}
			if n > MostCommon && (s.Every < every || p.Every < every && !(overlap && every/p.Every <= n)) {
				n = MostCommon
			}
			each := min(p.count(p.index(at)), s.count(s.index(at)))
			rest := p.without(at, every, n, each, overlap)
			if len(left)+len(rest)-1 > most {
				continue
			}
			left = append(left[:i:i], append(rest, left[i+1:]...)...)
			queue = append(s.without(at, every, n, each, false), queue...)
			removed, found = removed+n*each, true
			break
		}
		if !found {
			unfound = append(unfound, s)
		}
	}
	return left, unfound, removed
}

// The method "common" returns the slots that two strands (series of slots) have in common: n slots, of which the first
// is at the instant "at". If the strands (series of slots) have no common slots, n is 0. The method "common" leaves out
// a last slot that has fewer permits than the other slots. If no distance is a multiple of the other distance, "common"
// returns at most one common slot.
func (s *Strand) common(o *Strand) (at Time, every, n int64) {
	wide, fine := s, o // the strands with the wider and with the finer distance
	if s.Every < o.Every {
		wide, fine = o, s
	}
	every, at = wide.Every, wide.At
	if at < fine.At && every > 0 {
		at += (fine.At - at + Time(every) - 1) / Time(every) * Time(every)
	}
	last := min(wide.newest(), fine.newest())
	switch {
	case at > last || at < fine.At:
		return 0, 0, 0
	case fine.Every == 0:
		if at != fine.At {
			return 0, 0, 0
		}
		return at, every, 1
	case every%fine.Every != 0:
		return s.oneOf(o)
	case int64(at-fine.At)%fine.Every != 0:
		return 0, 0, 0
	}
	n = int64(last-at)/every + 1
	if end := at + Time((n-1)*every); n > 1 && (s.count(s.index(end)) < s.each() || o.count(o.index(end)) < o.each()) {
		n--
	}
	return at, every, n
}

// Like the method "common", oneOf returns the first slot that two strands (series of slots) of different distances have
// in common. The method oneOf checks only the first MostOdd slots of the strand (series of slots) with fewer slots. For
// example, a strand (series of slots) with an unusual distance may consist of the last slot of one burst and the first
// slot of the next burst.
func (s *Strand) oneOf(o *Strand) (at Time, every, n int64) {
	few, many := s, o
	if o.slots() < s.slots() {
		few, many = o, s
	}
	for i := range min(few.slots(), MostOdd) {
		at = few.At + Time(i*few.Every)
		if past := int64(at - many.At); past >= 0 && at <= many.newest() && past%many.Every == 0 {
			return at, few.Every, 1
		}
	}
	return 0, 0, 0
}

// The method "without" returns the slots of a strand (series of slots) after a removal. The removal takes "each"
// permits from n slots of the strand (series of slots), and the first of these slots is at the instant "at". If the
// argument "overlap" is true, the method "without" returns as few strands (series of slots) as possible. If the
// argument "overlap" is false, the returned strands (series of slots) follow one another in time.
func (s *Strand) without(at Time, every, n, each int64, overlap bool) (left []Strand) {
	i, step := s.index(at), int64(1)
	if n > 1 {
		step = every / s.Every
	}
	stay := s.count(i) - each
	left = s.part(nil, 0, i)
	if step == 1 || overlap && step <= n {
		left = appendStrand(left, at, every, stay, n*stay)
		for k := int64(1); k < step; k++ {
			left = appendStrand(left, at+Time(k*s.Every), every, s.Burst, (n-1)*s.Burst)
		}
	} else {
		for k := range n {
			left = appendStrand(left, at+Time(k*every), 0, stay, stay)
			if k+1 < n {
				left = s.part(left, i+k*step+1, i+(k+1)*step)
			}
		}
	}
	return s.part(left, i+(n-1)*step+1, s.slots())
}
