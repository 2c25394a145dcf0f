package server

import (
	"time"

	"capper/internal/pacing"
)

// due holds the number of granted permits whose slots are in the future. The key is the second, in seconds since 1970,
// by which all these slots have come. A number is negative when this instance returned permits that another instance
// granted.
type due map[int64]int

// add adds the last permits of a grant, whose total number is the argument permits.
func (d due) add(now time.Time, runs []pacing.WaitRun, permits int) {
	for i := len(runs) - 1; i >= 0 && permits > 0; i-- {
		r := &runs[i]
		d.addRun(now, r, max(0, r.Permits-permits), 1)
		permits -= r.Permits
	}
}

// remove subtracts permits that a client returned unused.
func (d due) remove(now time.Time, runs []pacing.WaitRun) {
	for i := range runs {
		d.addRun(now, &runs[i], 0, -1)
	}
}

// addRun adds the permits of a run, beginning with permit number from. The argument times is 1 to add and -1 to
// subtract the permits.
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

// take removes the permits whose slots have come, and returns the number of these permits. take returns 0 for a
// negative number, and keeps the number for the next call, so that the sum over all instances becomes right.
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
