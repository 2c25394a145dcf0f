package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"capper/internal/pacing"
)

const (
	// gatherFor is the maximum time for which a combined request waits for callers whose previous request has just
	// ended. Such callers often send the next request at once, so that one script call can serve all of them.
	gatherFor = time.Millisecond
	// mostJoined and mostJoinedPermits limit the requests with ids that one script call serves, because the script
	// stores each of these requests.
	mostJoined        = 256
	mostJoinedPermits = 4096
)

// A joint combines permit requests with equal targets and equal maximum waits into one call of pace.lua. While a script
// call for the same targets and the same maximum wait is in progress, later requests wait. After the script call, the
// waiting requests become one combined request. The permits of the combined request are divided among the requests in
// order of arrival. The callers get the same permits as with separate script calls, at the cost of one call.
type joint struct {
	waiting   []*member
	gathering bool // no request is in progress; the joint waits for more requests
	expected  int  // when this number of requests waits, the wait for more requests ends
	round     int  // counts the waits for requests
}

// A member is a permit request that waits for the end of the request in progress, to be combined with others.
type member struct {
	ask   *pacing.Ask
	ctx   context.Context
	done  chan struct{} // closed when grant and err are set
	grant pacing.Grant
	err   error
}

// The type "joints" holds the permit requests in progress. The map key is the result of jointKey: the properties that
// combined requests share.
type joints struct {
	mu   sync.Mutex
	open map[string]*joint
	runs sync.WaitGroup // goroutines of combined requests
	take func(ctx context.Context, ask *pacing.Ask, joined []*pacing.Ask) (pacing.Grant, error)
}

// The function "joins" reports whether the permit request may be combined with other requests. A request for no permits
// may not be combined. A request that continues or ends an earlier request may not be combined, because the store
// remembers continued and ended requests in another form.
func joins(ask *pacing.Ask) bool { return ask.Permits > 0 && !ask.Continues && !ask.Ends }

// hasID reports whether the permit request has an id. The store remembers a request with an id.
func hasID(ask *pacing.Ask) bool { return ask.Request != pacing.Request{} }

// jointKey returns the properties that combined permit requests must share, as one text.
func jointKey(ask *pacing.Ask) string {
	key := binary.AppendVarint(make([]byte, 0, 64), int64(ask.MaxWait))
	key = append(key, ask.Group()...)
	if hasID(ask) {
		key = binary.AppendVarint(key, int64(ask.RememberedFor()))
	}
	for i := range ask.Targets {
		t := &ask.Targets[i]
		key = append(append(append(append(key, 0), t.Pacer...), 0), t.Message...)
		key = append(key, 0, byte(len(t.Limits)))
		for _, limit := range t.Limits {
			key = binary.AppendVarint(binary.AppendVarint(key, int64(limit.Max)), int64(limit.Window))
		}
	}
	return string(key)
}

// The method Take takes the permits of the request. If no request with the same jointKey (for example, with the same
// targets) is in progress, Take calls the script immediately. If such a request is in progress, the new request waits,
// and the store combines it with other waiting requests.
func (j *joints) Take(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	key := jointKey(ask)
	j.mu.Lock()
	if other := j.open[key]; other != nil {
		m := &member{ask: ask, ctx: ctx, done: make(chan struct{})}
		other.waiting = append(other.waiting, m)
		if other.gathering && len(other.waiting) >= other.expected {
			j.begin(key, other)
		}
		j.mu.Unlock()
		select {
		case <-m.done:
			return m.grant, m.err
		case <-ctx.Done(): // permits that the script still grants to this caller stay unused
			return pacing.Grant{}, ctx.Err()
		}
	}
	j.open[key] = &joint{}
	j.mu.Unlock()
	defer j.gather(key, 1)
	return j.take(ctx, ask, nil)
}

// The method "gather" waits for further requests to combine, after a script call has ended. The argument "served" of
// the method "gather" is the number of requests that the last script call served. If the call served one request and no
// request waits, "gather" does not wait.
func (j *joints) gather(key string, served int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	next := j.open[key]
	next.gathering, next.expected = true, served+len(next.waiting)
	next.round++
	if next.expected == 1 {
		j.begin(key, next)
		return
	}
	round := next.round
	j.runs.Add(1)
	time.AfterFunc(gatherFor, func() {
		defer j.runs.Done()
		j.mu.Lock()
		defer j.mu.Unlock()
		if next.gathering && next.round == round {
			j.begin(key, next)
		}
	})
}

// The method "begin" starts the next combined request, or removes the joint from the map if no request waits. The
// caller of the method "begin" must hold j.mu.
func (j *joints) begin(key string, next *joint) {
	next.gathering = false
	members := next.take()
	if members == nil {
		delete(j.open, key)
		return
	}
	j.runs.Go(func() {
		defer j.gather(key, len(members))
		j.takeFor(members)
	})
}

// The method "take" removes the requests for the next script call from the queue: at most as many as one call may
// serve. The method "take" drops requests whose callers have stopped waiting. A request with the same id as an earlier
// member waits for a later script call.
func (j *joint) take() (members []*member) {
	permits, most := 0, pacing.MaxPermits
	seen := map[pacing.Request]bool{}
	for ; len(j.waiting) > 0; j.waiting = j.waiting[1:] {
		m := j.waiting[0]
		if m.ctx.Err() != nil {
			continue
		}
		permits += m.ask.Permits
		if hasID(m.ask) {
			most = mostJoinedPermits
			if seen[m.ask.Request] || len(members) == mostJoined {
				break
			}
			seen[m.ask.Request] = true
		}
		if len(members) > 0 && permits > most {
			break
		}
		members = append(members, m)
	}
	return members
}

// takeFor takes the permits of all members (combined requests) in one script call. The deadline of the script call is
// the latest deadline of the members. The script call belongs to the trace of the first member.
func (j *joints) takeFor(members []*member) {
	if len(members) == 1 {
		j.takeAlone(members[0])
		return
	}
	ask := *members[0].ask
	ctx, cancel := context.WithDeadline(context.WithoutCancel(members[0].ctx), latestDeadline(members))
	defer cancel()
	var joined []*pacing.Ask
	if hasID(&ask) {
		ask.Request, ask.Content, joined = pacing.Request{}, [8]byte{}, asksOf(members)
	}
	for _, m := range members[1:] {
		ask.Permits += m.ask.Permits
	}
	grant, err := j.take(ctx, &ask, joined)
	if again := (*repeatedError)(nil); errors.As(err, &again) {
		j.takeApart(members, again.asks)
		return
	}
	rest := shares{grant}
	for _, m := range members {
		if m.err = err; err == nil {
			if m.grant = rest.share(m.ask.Permits); joined != nil {
				m.grant.Runs = runsOf(&m.grant)
			}
		}
		close(m.done)
	}
}

// runsOf returns the runs of the grant's permits, in the form that the script stores. With equal runs, a repeated
// request gets the same permits.
func runsOf(grant *pacing.Grant) []pacing.WaitRun {
	var log pacing.Log
	for i := range grant.Runs {
		run := &grant.Runs[i]
		for k := 0; k < run.Permits; {
			n := run.Permits - k
			if run.Every > 0 {
				n = min(n, run.Burst)
			}
			log.Append(grant.At.Add(run.WaitOf(k)), 0, int64(n), int64(n))
			k += n
		}
	}
	return log.WaitRuns(grant.At)
}

func asksOf(members []*member) (asks []*pacing.Ask) {
	for _, m := range members {
		asks = append(asks, m.ask)
	}
	return asks
}

// takeApart takes the permits of each repeated request in a separate script call, and the permits of the other members
// in one call.
func (j *joints) takeApart(members []*member, repeated []int) {
	var all sync.WaitGroup
	var others []*member
	for i, m := range members {
		if slices.Contains(repeated, i) {
			all.Go(func() { j.takeAlone(m) })
		} else {
			others = append(others, m)
		}
	}
	if len(others) > 0 {
		j.takeFor(others)
	}
	all.Wait()
}

func (j *joints) takeAlone(m *member) {
	m.grant, m.err = j.take(m.ctx, m.ask, nil)
	close(m.done)
}

func latestDeadline(members []*member) (deadline time.Time) {
	for _, m := range members {
		end, ok := m.ctx.Deadline()
		if !ok {
			end = time.Now().Add(time.Minute)
		}
		if end.After(deadline) {
			deadline = end
		}
	}
	return deadline
}

// The type "shares" is the rest of a combined grant: the permits that no request has received yet.
type shares struct{ pacing.Grant }

// The method "share" removes up to the given number of permits from the combined grant, and returns these permits. The
// method "share" removes the earliest permits first.
func (s *shares) share(permits int) pacing.Grant {
	own := s.Grant
	own.Runs, own.Granted = nil, min(permits, s.Granted)
	own.More = s.More && own.Granted < permits
	for left := own.Granted; left > 0; {
		first := s.Runs[0]
		n := min(left, first.Permits)
		own.Runs = append(own.Runs, before(first, n))
		s.Runs = append(after(first, n), s.Runs[1:]...)
		left -= n
	}
	s.Granted -= own.Granted
	return own
}

// The function "before" returns a run with the first n permits of the run r.
func before(r pacing.WaitRun, n int) pacing.WaitRun {
	if r.Permits = n; n <= r.Burst {
		r.Every, r.Burst = 0, 1
	}
	return r
}

// The function "after" returns the run r without its first n permits, in up to two runs.
func after(r pacing.WaitRun, n int) (runs []pacing.WaitRun) {
	if n == r.Permits {
		return nil
	}
	r.Wait, r.Permits = r.WaitOf(n), r.Permits-n
	if begun := n % r.Burst; r.Every > 0 && begun > 0 { // start with the remaining permits of a slot
		here := min(r.Burst-begun, r.Permits)
		runs = append(runs, before(r, here))
		if r.Wait, r.Permits = r.Wait+r.Every, r.Permits-here; r.Permits == 0 {
			return runs
		}
	}
	return append(runs, before(r, r.Permits))
}
