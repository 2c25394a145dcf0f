package pacingtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"capper/internal/pacing"
)

// Oracle records the grants of permits that test callers received, and finds grants that exceed a limit. An Oracle sees
// only grants that callers received, so a lost reply cannot cause a false fault. An Oracle is safe for concurrent use.
type Oracle struct {
	mu       sync.Mutex
	logs     map[string][]point
	requests map[pacing.Request][]point
	returned map[pacing.Request]keeping
	faults   []string
	added    int // number of added grants
}

// A point is a number of granted permits with the same slot, together with the limits that applied to these permits.
type point struct {
	at      pacing.Time
	permits int
	limits  []pacing.Limit
	granted pacing.Time
	order   int // number of the grant in the order of Add
	request pacing.Request
}

// The type "keeping" describes the permits that a request still has after the return of its other permits.
type keeping struct {
	permits int         // the number of the first permits that the request keeps
	at      pacing.Time // when the store removed the other permits
}

// NewOracle returns an oracle without any grants.
func NewOracle() *Oracle {
	return &Oracle{logs: map[string][]point{}, requests: map[pacing.Request][]point{},
		returned: map[pacing.Request]keeping{}}
}

// CloneBefore copies the oracle, then calls the function in the argument "do", and returns the copy. CloneBefore locks
// the oracle until the function "do" returns, so that no client can record a returned permit in that time.
func (o *Oracle) CloneBefore(do func()) *Oracle {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer do()
	return o.clone()
}

// Clone returns a copy of the oracle.
func (o *Oracle) Clone() *Oracle {
	return o.CloneBefore(func() {})
}

func (o *Oracle) clone() *Oracle {
	c := &Oracle{logs: map[string][]point{}, requests: maps.Clone(o.requests),
		returned: maps.Clone(o.returned), faults: slices.Clone(o.faults), added: o.added}
	for name, points := range o.logs {
		c.logs[name] = slices.Clone(points)
	}
	return c
}

// The method Add records the permits that a caller received for its request.
func (o *Oracle) Add(ask *pacing.Ask, grant *pacing.Grant) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.added++
	points := o.points(ask, grant)
	if ask.Request != (pacing.Request{}) && len(points) > 0 {
		before := o.requests[ask.Request]
		if len(before) > 0 && points[0].at < before[len(before)-1].at.Add(pacing.RememberFor) {
			o.repeated(ask, before, points, grant.Replayed)
			return // the oracle has already recorded these permits
		}
		// The request is new, or the store has forgotten the request and granted new permits. If the reply with the new
		// permits was lost, the present grant repeats them.
		delete(o.returned, ask.Request)
		o.requests[ask.Request] = points
	}
	for i := range ask.Targets {
		name := nameOf(&ask.Targets[i])
		for _, p := range points {
			p.limits, p.request = ask.Targets[i].Limits, ask.Request
			o.logs[name] = append(o.logs[name], p)
		}
	}
}

// The method "repeated" checks the grant of a repeated request that the store must still remember.
func (o *Oracle) repeated(ask *pacing.Ask, before, points []point, replayed bool) {
	if kept, some := o.returned[ask.Request]; some && replayed {
		o.replayed(before, points, kept)
	} else if !slices.EqualFunc(before, points, equal) {
		o.fault("a request was granted %d slots from %d on, and again %d from %d on", len(before), before[0].at,
			len(points), points[0].at)
	}
}

// The method "replayed" checks a repeated request after the return of some permits: the request must get only the
// remaining permits.
func (o *Oracle) replayed(before, points []point, kept keeping) {
	before, granted := first(before, pacing.MaxPermits), 0
	for _, p := range points {
		granted += p.permits
	}
	switch at := points[0].granted; {
	case at > kept.at && granted > kept.permits:
		o.fault("a request of which %d permits stayed was granted %d", kept.permits, granted)
	case !slices.EqualFunc(first(before, granted), points, equal):
		o.fault("a request was granted %d slots, and again %d others", len(before), len(points))
	}
}

func equal(a, b point) bool { return a.at == b.at && a.permits == b.permits }

// The function "first" returns the points (permits with their slots) of the first permits, up to the given number of
// permits.
func first(points []point, permits int) (some []point) {
	for _, p := range points {
		if p.permits = min(p.permits, permits); p.permits == 0 {
			break
		}
		permits -= p.permits
		some = append(some, p)
	}
	return some
}

// GiveUp removes from the oracle the permits that a sender is about to return: all permits of the request except the
// first "used" permits. A sender calls GiveUp before it asks the store to remove the permits.
func (o *Oracle) GiveUp(ask *pacing.Ask, used int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, some := o.returned[ask.Request]; !some {
		o.returned[ask.Request] = keeping{pacing.MaxPermits, pacing.Never}
	}
	for i := range ask.Targets {
		name, left := nameOf(&ask.Targets[i]), used
		var kept []point
		for _, p := range o.logs[name] {
			if p.request == ask.Request {
				if p.permits = min(p.permits, left); p.permits == 0 {
					continue
				}
				left -= p.permits
			}
			kept = append(kept, p)
		}
		o.logs[name] = kept
	}
}

// The method Return records in the oracle that the store has removed returned permits of a request.
func (o *Oracle) Return(ask *pacing.Ask, returned *pacing.Returned) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !returned.Known {
		return
	}
	if before, some := o.returned[ask.Request]; !some || before.permits > returned.Kept {
		o.returned[ask.Request] = keeping{returned.Kept, returned.At}
	}
	for _, r := range returned.Runs {
		if r.Wait <= 0 {
			o.fault("a slot of %v ago was given back", -r.Wait)
		}
	}
}

// nameOf returns the map key for the log of a target: the name of the pacer and the hash of the message or key.
func nameOf(t *pacing.Target) string { return t.Pacer + "/" + t.Message }

func (o *Oracle) fault(format string, args ...any) {
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

// The method "points" returns the slots of the grant. If the slots contradict the permit request, the method "points"
// records a fault.
func (o *Oracle) points(ask *pacing.Ask, grant *pacing.Grant) (points []point) {
	total, latest := 0, grant.At
	for _, run := range grant.Runs {
		for left, at := run.Permits, grant.At.Add(run.Wait); left > 0; at = at.Add(run.Every) {
			n := left
			if run.Every > 0 {
				n = min(left, run.Burst)
			}
			if n < 1 {
				o.fault("a run that has no end: %+v", run)
				return nil
			}
			if at < latest && !grant.Replayed {
				o.fault("a slot at %d after one at %d, granted at %d", at, latest, grant.At)
			}
			latest = max(latest, at)
			total, left = total+n, left-n
			if last := len(points) - 1; last >= 0 && points[last].at == at { // the next run continues the slot
				points[last].permits += n
				continue
			}
			points = append(points, point{at: at, permits: n, granted: grant.At, order: o.added})
		}
	}
	if total != grant.Granted || total > ask.Permits {
		o.fault("%d granted of %d, with slots for %d", grant.Granted, ask.Permits, total)
	}
	if latest > grant.At.Add(ask.MaxWait) && !grant.Replayed {
		o.fault("a slot in %v, though %v was the longest wait", latest.Sub(grant.At), ask.MaxWait)
	}
	return points
}

// The method Forget removes the records of the oracle about the logs of the pacer.
func (o *Oracle) Forget(pacer string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	forgetPacer(o.logs, pacer)
}

// forgetPacer removes the pacer's logs from a map with the log names of nameOf as keys.
func forgetPacer[L any](logs map[string]L, pacer string) {
	maps.DeleteFunc(logs, func(name string, _ L) bool { return strings.HasPrefix(name, pacer+"/") })
}

// The method Granted returns the number of permits of the target that the oracle has recorded.
func (o *Oracle) Granted(target *pacing.Target) (permits int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.logs[nameOf(target)] {
		permits += p.permits
	}
	return permits
}

// Faults returns all faults that the oracle has found in grants. A fault is a window with too many permits, a request
// with two different grants, or a slot that contradicts the request for permits.
func (o *Oracle) Faults() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	faults := slices.Clone(o.faults)
	for name, points := range o.logs {
		inOrder(points)
		for _, limit := range limitsOf(points) {
			if fault := exceeded(points, limit); fault != "" {
				faults = append(faults, name+": "+fault)
			}
		}
	}
	return faults
}

// inOrder sorts the points by slot. Points with equal slots keep their order.
func inOrder(points []point) {
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
}

// limitsOf returns all limits that applied to the grants of these points (permits with their slots).
func limitsOf(points []point) (limits []pacing.Limit) {
	for i := range points {
		if i > 0 && &points[i].limits[0] == &points[i-1].limits[0] {
			continue
		}
		for _, limit := range points[i].limits {
			if !slices.Contains(limits, limit) {
				limits = append(limits, limit)
			}
		}
	}
	return limits
}

// The function "exceeded" describes the window with the most permits beyond the limit, or returns "" if no window
// exceeds the limit. The points must be sorted by slot. If the limit did not apply when the last permits of a window
// were granted, "exceeded" ignores this window.
func exceeded(points []point, limit pacing.Limit) (fault string) {
	within, first, most := 0, 0, limit.Max
	for i := range points {
		within += points[i].permits
		for points[first].at.Add(limit.Window) <= points[i].at {
			within -= points[first].permits
			first++
		}
		if within > most && lastHas(points[first:i+1], limit) {
			most = within
			fault = fmt.Sprintf("%d permits within %v from %d to %d, of a limit of %d in %v",
				within, points[i].at.Sub(points[first].at), points[first].at, points[i].at, limit.Max, limit.Window)
		}
	}
	return fault
}

// lastHas reports whether the limit applied to the point (permits with one slot) that was granted last. If the store's
// times and the calls of Add have different last points, the limit must have applied to both points.
func lastHas(points []point, limit pacing.Limit) bool {
	last := slices.MaxFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.granted, b.granted), cmp.Compare(a.order, b.order))
	})
	added := slices.MaxFunc(points, func(a, b point) int { return cmp.Compare(a.order, b.order) })
	return slices.Contains(last.limits, limit) && slices.Contains(added.limits, limit)
}

// Share returns the speed at which the target's permits were granted, as a fraction of the speed that the target's
// strictest limit allows. For the permits of all full windows, the method Share compares the shortest time that the
// limit allows with the real time that these permits took. The result of Share is the shortest time divided by the real
// time. The result "windows" of Share is the number of full windows.
func (o *Oracle) Share(target *pacing.Target) (share float64, windows int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	points, total := o.logs[nameOf(target)], 0
	inOrder(points)
	for _, p := range points {
		total += p.permits
	}
	for _, limit := range target.Limits {
		if n := (total - 1) / limit.Max; n > 0 {
			took := holder(points, n*limit.Max).Sub(points[0].at)
			if of := float64(n) * float64(limit.Window) / float64(took); of > share {
				share, windows = of, n
			}
		}
	}
	return share, windows
}

// The function "holder" returns the slot of the permit with the given number. The first permit of the points has the
// number 0.
func holder(points []point, permit int) pacing.Time {
	i := 0
	for ; permit >= points[i].permits; i++ {
		permit -= points[i].permits
	}
	return points[i].at
}
