package redisstore

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"capper/internal/pacing"
)

// joint combines waiting requests for permits that have the same targets and the same maximum wait. While one such
// request is under way, later ones wait, become one combined request, and divide its grant in order of arrival. The
// result is the same as one request after another, and all of them share the cost of one script call.
type joint struct{ waiting []*member }

// member is a request for permits that waits for the one under way.
type member struct {
	ask   *pacing.Ask
	ctx   context.Context
	done  chan struct{} // closed when grant and err are set
	grant pacing.Grant
	err   error
}

// joints holds the requests under way, by the properties that combined requests share.
type joints struct {
	mu   sync.Mutex
	open map[string]*joint
	runs sync.WaitGroup // combined requests
	take func(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error)
}

// joins reports whether the request may be combined with others. A request with an id is remembered on its own, and a
// request for no permits takes none.
func joins(ask *pacing.Ask) bool { return ask.Permits > 0 && ask.Request == pacing.Request{} }

// jointKey returns the properties that combined requests must share, as text.
func jointKey(ask *pacing.Ask) string {
	key := binary.AppendVarint(make([]byte, 0, 64), int64(ask.MaxWait))
	for i := range ask.Targets {
		t := &ask.Targets[i]
		key = append(append(append(append(key, t.Pacer...), 0), t.Message...), 0, byte(len(t.Limits)))
		for _, limit := range t.Limits {
			key = binary.AppendVarint(binary.AppendVarint(key, int64(limit.Max)), int64(limit.Window))
		}
	}
	return string(key)
}

// Take takes the permits of the request. Take runs at once, or combined with others while an equal request is under
// way.
func (j *joints) Take(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	key := jointKey(ask)
	j.mu.Lock()
	if other := j.open[key]; other != nil {
		m := &member{ask: ask, ctx: ctx, done: make(chan struct{})}
		other.waiting = append(other.waiting, m)
		j.mu.Unlock()
		select {
		case <-m.done:
			return m.grant, m.err
		case <-ctx.Done(): // the rate loses the permits that it may still be granted
			return pacing.Grant{}, ctx.Err()
		}
	}
	j.open[key] = &joint{}
	j.mu.Unlock()
	defer j.handOn(key)
	return j.take(ctx, ask)
}

// handOn starts the next combined request, for the members that arrived meanwhile.
func (j *joints) handOn(key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	members := j.open[key].next()
	if members == nil {
		delete(j.open, key)
		return
	}
	j.runs.Go(func() {
		defer j.handOn(key)
		j.takeFor(members)
	})
}

// next removes from the queue the members that still wait, at most as many as one request may serve.
func (j *joint) next() (members []*member) {
	permits := 0
	for len(j.waiting) > 0 {
		m := j.waiting[0]
		if m.ctx.Err() == nil {
			if permits += m.ask.Permits; permits > pacing.MaxPermits {
				break
			}
			members = append(members, m)
		}
		j.waiting = j.waiting[1:]
	}
	return members
}

// takeFor takes the permits of all members in one call. The call lasts until the last member stops waiting.
func (j *joints) takeFor(members []*member) {
	ask := *members[0].ask
	ctx, cancel := context.WithDeadline(context.Background(), latestDeadline(members))
	defer cancel()
	for _, m := range members[1:] {
		ask.Permits += m.ask.Permits
	}
	grant, err := j.take(ctx, &ask)
	rest := shares{grant}
	for _, m := range members {
		if m.err = err; err == nil {
			m.grant = rest.share(m.ask.Permits)
		}
		close(m.done)
	}
}

// latestDeadline returns the time at which the last member stops waiting.
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

// shares is the part of a grant that has not been distributed yet.
type shares struct{ pacing.Grant }

// share removes up to the given number of permits from the grant, the earliest first, and returns them.
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

// before returns the first n permits of the run.
func before(r pacing.WaitRun, n int) pacing.WaitRun {
	if r.Permits = n; n <= r.Burst {
		r.Every, r.Burst = 0, 1
	}
	return r
}

// after returns the run without its first n permits.
func after(r pacing.WaitRun, n int) (runs []pacing.WaitRun) {
	if n == r.Permits {
		return nil
	}
	r.Wait, r.Permits = r.WaitOf(n), r.Permits-n
	if begun := n % r.Burst; r.Every > 0 && begun > 0 { // start with the rest of a slot
		here := min(r.Burst-begun, r.Permits)
		runs = append(runs, before(r, here))
		if r.Wait, r.Permits = r.Wait+r.Every, r.Permits-here; r.Permits == 0 {
			return runs
		}
	}
	return append(runs, before(r, r.Permits))
}
