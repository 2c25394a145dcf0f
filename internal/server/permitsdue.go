package server

import (
	"time"

	"capper/internal/pacing"
)

// due holds granted permits whose slots are ahead, by the second in which they have all come: seconds since 1970.
type due map[int64]int

// add adds the last permits of a grant.
func (d due) add(now time.Time, runs []pacing.WaitRun, permits int) {
	for i := len(runs) - 1; i >= 0 && permits > 0; i-- {
		r := &runs[i]
		d.addRun(now, r, max(0, r.Permits-permits))
		permits -= r.Permits
	}
}

// addRun adds the permits of a run from the given one on.
func (d due) addRun(now time.Time, r *pacing.WaitRun, from int) {
	for from < r.Permits {
		at, to := now.Add(r.WaitOf(from)), r.Permits
		second := at.Add(time.Second - 1).Unix()
		if r.Every > 0 {
			bursts := from/r.Burst + int(time.Unix(second, 0).Sub(at)/r.Every) + 1
			to = min(to, bursts*r.Burst)
		}
		d[second] += to - from
		from = to
	}
}

// take removes the permits whose slots have come, and returns their number.
func (d due) take(now time.Time) (permits int) {
	for second, n := range d {
		if second <= now.Unix() {
			permits += n
			delete(d, second)
		}
	}
	return permits
}
