package redisstore

import (
	"context"
	"encoding/binary"
	"sync"
	"time"

	"capper/internal/pacing"
)

// joint is asks for the same targets, with the same wait, that came while one was
// under way: they become one ask together, and share its grant in the order in which
// they came, as if they had been one after the other. What a script call costs is
// shared by all.
type joint struct{ waiting []*member }

// member is an ask that waits for the one under way.
type member struct {
	ask   *pacing.Ask
	ctx   context.Context
	done  chan struct{} // closed when there are grant and err
	grant pacing.Grant
	err   error
}

// joints are the asks under way, by what has to be equal.
type joints struct {
	mu   sync.Mutex
	open map[string]*joint
	runs sync.WaitGroup // of asks for several
	take func(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error)
}

// joins reports whether the ask may be one with others: a request is remembered by
// itself, and looking is free.
func joins(ask *pacing.Ask) bool { return ask.Permits > 0 && ask.Request == pacing.Request{} }

// jointKey is what asks have in common that become one.
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

// Take takes the permits of the ask: at once, or with others when one like it is
// under way.
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
		case <-ctx.Done(): // what it may be given is lost to the rate
			return pacing.Grant{}, ctx.Err()
		}
	}
	j.open[key] = &joint{}
	j.mu.Unlock()
	defer j.handOn(key)
	return j.take(ctx, ask)
}

// handOn lets those who came meanwhile have their turn.
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

// next takes those off who still wait, as many as one ask may be for.
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

// takeFor takes the permits of all members at once, for as long as one of them waits.
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

// latest is when the last of the members stops waiting.
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

// shares is what is left of a grant.
type shares struct{ pacing.Grant }

// share takes up to so many permits off the grant, the earliest.
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

// before is the first n permits of the run.
func before(r pacing.WaitRun, n int) pacing.WaitRun {
	if r.Permits = n; n <= r.Burst {
		r.Every, r.Burst = 0, 1
	}
	return r
}

// after is the run without its first n permits.
func after(r pacing.WaitRun, n int) (runs []pacing.WaitRun) {
	if n == r.Permits {
		return nil
	}
	r.Wait, r.Permits = r.WaitOf(n), r.Permits-n
	if begun := n % r.Burst; r.Every > 0 && begun > 0 { // begin with what is left at a slot
		here := min(r.Burst-begun, r.Permits)
		runs = append(runs, before(r, here))
		if r.Wait, r.Permits = r.Wait+r.Every, r.Permits-here; r.Permits == 0 {
			return runs
		}
	}
	return append(runs, before(r, r.Permits))
}
