package pacing

import "sort"

// MostRuns is how many runs a log has at most: in RunSize bytes each they are
// below 64 kB. Who adds to a log that may come to have more merges it first.
const MostRuns = 3000

// Run is permits of a log whose slots are regular: Burst at At, Burst at At + Every
// and so on, the last time maybe fewer. It has as many permits as there are from
// its First to the First of the next run, or to the log's Total.
type Run struct {
	At    Time
	Every int64 // microseconds; 0: all at At
	Burst int64 // permits at each slot; 1 where Every is 0
	First int64 // number of its first permit, among all that the log has had
}

// slot is that of the permit k of the run, from 0.
func (r *Run) slot(k int64) Time { return r.At + Time(k/r.Burst*r.Every) }

// through is how many permits of the run, of count, have a slot up to t.
func (r *Run) through(t Time, count int64) int64 {
	switch {
	case t < r.At:
		return 0
	case r.Every == 0:
		return count
	}
	return min(count, (int64(t-r.At)/r.Every+1)*r.Burst)
}

// The most that a run holds; see AppendRun.
const (
	MostEvery = 1<<40 - 1
	MostBurst = 1<<24 - 1
)

// Log is the slots of a target, oldest first: those that were not dropped. The zero
// value is empty.
type Log struct {
	Runs  []Run
	Total int64 // permits that it has ever had
}

// first is the number of the first permit that is kept.
func (l *Log) first() int64 {
	if len(l.Runs) == 0 {
		return l.Total
	}
	return l.Runs[0].First
}

// end is the number after the last permit of the run.
func (l *Log) end(run int) int64 {
	if run+1 < len(l.Runs) {
		return l.Runs[run+1].First
	}
	return l.Total
}

// holder is the run with the permit, which is kept.
func (l *Log) holder(permit int64) int {
	return sort.Search(len(l.Runs), func(i int) bool { return l.Runs[i].First > permit }) - 1
}

// Newest is the newest slot; false: there is none.
func (l *Log) Newest() (Time, bool) {
	if len(l.Runs) == 0 {
		return 0, false
	}
	last := &l.Runs[len(l.Runs)-1]
	return last.slot(l.Total - 1 - last.First), true
}

// used is how many of the newest max slots are later than t.
func (l *Log) used(maximum int64, t Time) int64 {
	i := sort.Search(len(l.Runs), func(i int) bool { return l.Runs[i].slot(l.end(i)-1-l.Runs[i].First) > t })
	if i == len(l.Runs) {
		return 0
	}
	r := &l.Runs[i]
	return min(maximum, l.Total-r.First-r.through(t, l.end(i)-r.First))
}

// Append adds so many permits, at most MostBurst: burst at the slot at, burst at
// at + every and so on. at is not before the newest slot. burst is permits where
// every is 0.
func (l *Log) Append(at Time, every, burst, permits int64) {
	l.Total += permits
	if n := len(l.Runs); n > 0 && l.Runs[n-1].join(at, every, burst, permits, l.Total-permits-l.Runs[n-1].First) {
		return
	}
	if every == 0 || permits <= burst {
		every, burst = 0, 1
	}
	l.Runs = append(l.Runs, Run{at, every, burst, l.Total - permits})
}

// join makes the permits a part of the run, which has count, if they go on as it
// does.
func (r *Run) join(at Time, every, burst, permits, count int64) bool {
	single := permits <= burst // all at one slot
	if r.Every == 0 {
		gap := int64(at - r.At)
		switch {
		case gap == 0:
			return single
		case gap > MostEvery || count > MostBurst || !single && (every != gap || burst != count) || single &&
			permits > count:
			return false
		}
		r.Every, r.Burst = gap, count
		return true
	}
	latest := r.slot(count - 1)
	left := r.Burst - 1 - (count-1)%r.Burst // that the run can have more at its latest slot
	switch {
	case single && at == latest:
		return permits <= left
	case left > 0 || at != latest+Time(r.Every):
		return false
	}
	return single && permits <= r.Burst || every == r.Every && burst == r.Burst
}
