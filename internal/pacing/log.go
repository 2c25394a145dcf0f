package pacing

import "sort"

// MostRuns is the largest number of runs (series of permits at equal distances) in a pacer's log. Each run takes
// RunSize bytes, so all runs of a full log take less than 64 kB. If a caller may need more runs than MostRuns, the
// caller must first call Log.Merge.
const MostRuns = 3000

// Run is a series of permits at equal distances. The first slot of a Run is At, the next slot is At + Every, and so on.
// The field Burst is the number of permits at each slot of a Run. The last slot of a Run may have fewer permits. The
// permits of a run have the numbers from the run's field First to the next run's First minus 1. The permits in the last
// run of a log have numbers below Log.Total.
type Run struct {
	At    Time
	Every int64 // microseconds; 0: all permits at At
	Burst int64 // permits at each slot; 1 when Every is 0
	First int64 // the number of the run's first permit, counted over all permits of the log
}

// The method "slot" returns the slot of permit k of the run. The first permit of a run has the number k = 0.
func (r *Run) slot(k int64) Time { return r.At + Time(k/r.Burst*r.Every) }

// The method "through" returns the number of permits in the run with slots at or before t. The argument "count" of the
// method "through" is the number of all permits in the run.
func (r *Run) through(t Time, count int64) int64 {
	switch {
	case t < r.At:
		return 0
	case r.Every == 0:
		return count
	}
	slots := int64(t-r.At)/r.Every + 1
	if slots >= count { // each slot has a permit, and the product may be too large for the last instants
		return count
	}
	return min(count, slots*r.Burst)
}

// MostEvery and MostBurst are the largest values of Run.Every and Run.Burst that AppendRun can encode.
const (
	MostEvery = 1<<40 - 1
	MostBurst = 1<<24 - 1
)

// Log holds the slots that a pacer has granted, oldest first. A Log may lack old slots that no limit can count any
// more. The zero Log is empty.
type Log struct {
	Runs  []Run
	Total int64 // number of permits that the runs have ever had
	Ahead Ahead // slots that are not before the newest slot of the runs
}

// The method "first" returns the number of the oldest permit that Log.Runs still contains. The permits of a log are
// numbered from 0.
func (l *Log) first() int64 {
	if len(l.Runs) == 0 {
		return l.Total
	}
	return l.Runs[0].First
}

// The method "end" returns the number of the last permit of a run, plus 1. The argument "run" of the method "end" is
// the index of the run in Log.Runs.
func (l *Log) end(run int) int64 {
	if run+1 < len(l.Runs) {
		return l.Runs[run+1].First
	}
	return l.Total
}

// The method "holder" returns the index of the run in Log.Runs that contains the permit with the given number. Log.Runs
// must contain the permit.
func (l *Log) holder(permit int64) int {
	return sort.Search(len(l.Runs), func(i int) bool { return l.Runs[i].First > permit }) - 1
}

// The method "slot" returns the slot of a permit that is in the runs of the log.
func (l *Log) slot(permit int64) Time {
	r := &l.Runs[l.holder(permit)]
	return r.slot(permit - r.First)
}

// The method Newest returns the latest slot of the log, in Log.Runs or in Log.Ahead (slots with free slots before
// them). The method Newest returns false for an empty log.
func (l *Log) Newest() (Time, bool) {
	if at, ok := l.Ahead.newest(); ok {
		return at, true
	}
	return l.newest()
}

// The method "newest" returns the latest slot in Log.Runs, without the slots in Log.Ahead (slots with free slots before
// them). The method "newest" returns false if the log has no run.
func (l *Log) newest() (Time, bool) {
	if len(l.Runs) == 0 {
		return 0, false
	}
	last := &l.Runs[len(l.Runs)-1]
	return last.slot(l.Total - 1 - last.First), true
}

// The method "used" returns the number of permits in the log with slots later than t, but at most the argument
// "maximum".
func (l *Log) used(maximum int64, t Time) (n int64) {
	for i := range l.Ahead {
		n += l.Ahead[i].Permits - l.Ahead[i].through(t)
	}
	i := sort.Search(len(l.Runs), func(i int) bool { return l.Runs[i].slot(l.end(i)-1-l.Runs[i].First) > t })
	if i < len(l.Runs) {
		r := &l.Runs[i]
		n += l.Total - r.First - r.through(t, l.end(i)-r.First)
	}
	return min(maximum, n)
}

// The method Append adds at most MostBurst permits to the log, in slots at equal distances. The slot "at" gets the
// number of permits in the argument "burst", the slot "at + every" gets the same number, and so on. The slot "at" must
// not be before the newest slot in Log.Runs. If the argument "every" is 0, the arguments "burst" and "permits" must be
// equal.
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

// The method "join" adds permits to the run if the longer run still has equal distances and bursts. The argument
// "count" of the method "join" is the number of permits that the run has before the call of "join". The method "join"
// reports whether it has added the permits.
func (r *Run) join(at Time, every, burst, permits, count int64) bool {
	single := permits <= burst // all permits at one slot
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
	left := r.Burst - 1 - (count-1)%r.Burst // how many more permits fit into the run's latest slot
	switch {
	case single && at == latest:
		return permits <= left
	case left > 0 || at != latest+Time(r.Every):
		return false
	}
	return single && permits <= r.Burst || every == r.Every && burst == r.Burst
}
