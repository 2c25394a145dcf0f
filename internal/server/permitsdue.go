package server

import (
	"time"

	"capper/internal/pacing"
)

// The type "due" maps a future second (the Unix time of its end) to the number of granted permits with slots (start
// times) in the second. A number of permits is negative if clients returned permits through this instance that another
// instance had granted.
type due map[int64]int

// The method add adds the granted permits of a call to the counts. If the runs contain more permits than the argument
// "permits" says, the method add counts only the last permits of the runs.
func (d due) add(now time.Time, runs []pacing.WaitRun, permits int) {
	for i := len(runs) - 1; i >= 0 && permits > 0; i-- {
		r := &runs[i]
		d.addRun(now, r, max(0, r.Permits-permits), 1)
		permits -= r.Permits
	}
}

// The method remove subtracts the permits that a client returned unused from the counts. If the argument "sole" is
// true, no other instance uses the store, and the method remove deletes negative counts. A negative count then means
// that an earlier process, which has ended, granted the returned permits.
func (d due) remove(now time.Time, runs []pacing.WaitRun, sole bool) {
	for i := range runs {
		d.addRun(now, &runs[i], 0, -1)
	}
	for second, n := range d {
		if sole && n < 0 {
			delete(d, second)
		}
	}
}

// addRun counts the permits of a run (permits with equal distances), beginning with the permit number "from". The
// argument "times" is 1 to add the permits, and -1 to subtract them.
func (d due) addRun(now time.Time, r *pacing.WaitRun, from, times int) {
	for from < r.Permits {
		at, to := now.Add(r.WaitOf(from)), r.Permits
		second := at.Add(time.Second - 1).Unix()
		if r.Every > 0 {
			bursts := from/r.Burst + int(time.Unix(second, 0).Sub(at)/r.Every) + 1
			to = min(to, bursts*r.Burst)
		}
		d[second] += times * (to - from)
		from = to
	}
}

// take() removes from the map all permits whose slots (start times) are not in the future, and returns their number. If
// the number of permits is negative, take() returns 0 and keeps the number for its next call, so that the sum over all
// instances becomes right.
func (d due) take(now time.Time) (permits int) {
	for second, n := range d {
		if second <= now.Unix() {
			permits += n
			delete(d, second)
		}
	}
	if permits < 0 {
		d[now.Unix()] = permits
	}
	return max(0, permits)
}
