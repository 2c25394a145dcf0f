package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"strings"
	"time"

	"capper/client/api"
)

// ErrQueueTooLong is what a QueueTooLongError is.
var ErrQueueTooLong = errors.New("the queue is too long")

// QueueTooLongError is that a send would have to wait longer than
// PacerConfig.MaxWait, or than a pacer's own max_wait. Another provider may be
// quicker.
type QueueTooLongError struct {
	Wait  time.Duration // until the next send could start
	Pacer string        // that makes it wait
	Limit string        // the limit that does: its window, "rate" or "queue"
}

func (e *QueueTooLongError) Error() string {
	wait := e.Wait.Round(time.Millisecond)
	if e.Limit == api.LimitRate || e.Limit == api.LimitQueue {
		return fmt.Sprintf("pacer %s (%s): %v: %v", e.Pacer, e.Limit, ErrQueueTooLong, wait)
	}
	return fmt.Sprintf("pacer %s: its limit %s is used up for %v", e.Pacer, e.Limit, wait)
}

// Unwrap makes it an ErrQueueTooLong.
func (e *QueueTooLongError) Unwrap() error { return ErrQueueTooLong }

// refusal is a QueueTooLongError that holds for a while: not every caller needs to
// ask for himself how long the queue is.
type refusal struct {
	err   *QueueTooLongError
	at    time.Time
	until time.Time
}

// again is the refusal as of now; nil: it does not hold any more.
func (r *refusal) again(now time.Time) error {
	if r.err == nil || !now.Before(r.until) {
		return nil
	}
	e := *r.err
	e.Wait -= now.Sub(r.at)
	return &e
}

// demand tells how many permits are asked for, and when: about as many as are used
// within Ahead, and two round trips more.
type demand struct {
	ahead time.Duration
	asked time.Time     // when permits were last asked for
	last  int           // how many
	used  int           // permits that were used since then
	trip  time.Duration // of the answers, the longest, slowly forgotten
	room  []limitRoom   // as the last answer said
	pause time.Time     // until then nothing is asked for that nobody waits for
}

// limitRoom is what a limit leaves.
type limitRoom struct {
	left, max int
	window    time.Duration
}

// horizon is the time for which a batch is to suffice.
func (d *demand) horizon() time.Duration { return d.ahead + 2*d.trip }

// lead is how long before the stock is used up more is asked for.
func (d *demand) lead() time.Duration { return d.ahead/2 + 2*d.trip }

// batch is how many permits are used within the horizon, as it has gone since they
// were last asked for. It grows to the double at most, and where a limit leaves less,
// to what that gives within the horizon: what it gives later others may need.
func (d *demand) batch(now time.Time) int {
	if d.asked.IsZero() {
		return 0
	}
	perSecond := float64(d.used) / max(now.Sub(d.asked), time.Millisecond).Seconds()
	n := min(int(math.Ceil(perSecond*d.horizon().Seconds())), 2*d.last, api.MaxPermits)
	for _, r := range d.room {
		share := float64(r.max) * d.horizon().Seconds() / r.window.Seconds()
		n = min(n, max(r.left, int(math.Ceil(share))))
	}
	return n
}

// learn takes up how long an answer was under way and what it says of limits.
func (d *demand) learn(answer *api.Permits, trip time.Duration) {
	d.trip = min(max(trip, d.trip*7/8), time.Second)
	d.room = d.room[:0]
	for _, pacer := range answer.Pacers {
		if window, err := time.ParseDuration(pacer.Window); err == nil && pacer.Used != nil && window > 0 {
			d.room = append(d.room, limitRoom{pacer.Max - *pacer.Used, pacer.Max, window})
		}
	}
}

// due is when permits have to be asked for, as things are; false: not because time
// passes. lacking is how many those who wait lack.
func (p *Pacer) due(lacking, batch int) (time.Time, bool) {
	d := &p.demand
	at := p.stock.last().Add(-d.lead())
	switch often := d.asked.Add(p.cfg.Ahead); {
	case p.fetching != nil || lacking <= 0 && -lacking*2 >= batch:
		return at, false
	case lacking > 0 && often.Before(at):
		at = often // one call for all who came since the last one
	}
	if at.Before(d.pause) {
		at = d.pause
	}
	return at, true
}

// ask asks for permits if it is time to, else it tells when that will be; false: not
// because time passes.
func (p *Pacer) ask(now time.Time) (later time.Time, ok bool) {
	lacking, batch := p.wanted-p.stock.permits, p.demand.batch(now)
	if later, ok = p.due(lacking, batch); !ok || later.After(now) {
		return later, ok
	}
	request := p.open
	if request == nil {
		permits := lacking
		if p.stock.last().Before(now.Add(p.demand.lead())) {
			permits = max(lacking, batch+min(lacking, 0), 1)
		}
		request = p.request(now, min(permits, api.MaxPermits), lacking > 0)
	}
	p.demand.asked, p.demand.last, p.demand.used = now, request.Permits, 0
	ctx, cancel := context.WithCancel(context.Background())
	p.fetching = cancel
	go p.fetch(ctx, request)
	return later, false
}

// asking is a request with when it was first made.
type asking struct {
	api.PermitsRequest
	since time.Time
}

// request is for permits that somebody waits for, or just for those of the next time.
func (p *Pacer) request(now time.Time, permits int, awaited bool) *asking {
	wait := p.longest()
	if !awaited {
		wait = min(wait, p.demand.lead()+p.demand.horizon())
	}
	return &asking{api.PermitsRequest{
		Pacers: p.cfg.Pacers, MessageID: p.cfg.MessageID, Permits: permits, MaxWait: api.Wait(wait),
		RequestID: rand.Text(),
	}, now}
}

// placeAhead is how far ahead places are taken where any wait will do.
const placeAhead = time.Second

// longest is the longest wait that is asked for.
func (p *Pacer) longest() time.Duration {
	if p.cfg.MaxWait == 0 {
		return max(placeAhead, p.demand.lead()+p.demand.horizon())
	}
	return p.cfg.MaxWait
}

// fetch makes the call and takes up its answer.
func (p *Pacer) fetch(ctx context.Context, request *asking) {
	answer, trip, err := p.call(ctx, request)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.fetching()
	p.fetching, p.open = nil, nil
	switch {
	case err == nil:
		p.demand.learn(answer, trip)
		p.arrive(request, answer, now)
	case Passing(err): // and nobody waits any more: whoever comes next asks for the same
		p.open, p.demand.pause = request, now.Add(p.cfg.Ahead)
	default:
		p.demand.pause = now.Add(p.cfg.Ahead)
		p.refuse(fmt.Errorf("wait for permits of %s: %w", strings.Join(p.cfg.Pacers, ", "), err))
	}
	p.act(now)
}

// arrive takes up an answer.
func (p *Pacer) arrive(request *asking, answer *api.Permits, now time.Time) {
	p.stock.add(answer, request.since, now)
	if answer.Granted >= request.Permits {
		return
	}
	wait := time.Duration(0)
	if answer.RetryAfterMS != nil {
		wait = time.Duration(*answer.RetryAfterMS)
	}
	switch {
	case p.cfg.MaxWait == 0 || answer.LimitedBy == nil:
		p.demand.pause = now.Add(p.until(wait - p.longest()))
		return
	case time.Duration(request.MaxWait) < p.cfg.MaxWait: // nobody waited for them; who does now is to be told soon
		p.demand.pause = now.Add(p.until(0))
		return
	}
	holds := wait
	if wait > p.cfg.MaxWait {
		holds -= p.cfg.MaxWait
	}
	p.refused.err = &QueueTooLongError{wait, answer.LimitedBy.Pacer, answer.LimitedBy.Limit}
	p.refused.at, p.refused.until = now, now.Add(min(p.cfg.Ahead, holds))
	p.demand.pause = p.refused.until
	p.refuse(p.refused.err)
}

// mostPause is how long it takes at most until changed pacers are noticed.
const mostPause = 10 * time.Second

// until is for how long nothing is asked for when there will be something in d: by
// chance a little more or less than others take, so that nobody is always the last.
func (p *Pacer) until(d time.Duration) time.Duration {
	d = min(max(d, p.cfg.Ahead), mostPause)
	return d/2 + mathrand.N(d/2+1)
}

// tripTimeout is for one attempt: longer than the service takes to say that it
// cannot answer.
const tripTimeout = 10 * time.Second

// call repeats the request while that may help and somebody waits.
func (p *Pacer) call(ctx context.Context, request *asking) (*api.Permits, time.Duration, error) {
	for attempt := 1; ; attempt++ {
		start, answer := time.Now(), new(api.Permits)
		err := p.attempt(ctx, request, answer)
		p.recovered(err)
		if err == nil || ctx.Err() != nil || !Passing(err) || !p.awaited() {
			return answer, time.Since(start), err
		}
		p.failing = true
		if p.cfg.OnRetry != nil {
			p.cfg.OnRetry(err)
		}
		if p.client.wait(ctx, attempt, err) != nil {
			return nil, 0, err
		}
	}
}

// recovered tells of an answer after attempts that failed; a refusal is one.
func (p *Pacer) recovered(err error) {
	if !p.failing || err != nil && Passing(err) {
		return
	}
	p.failing = false
	if p.cfg.OnAnswer != nil {
		p.cfg.OnAnswer()
	}
}

// attempt makes the call once.
func (p *Pacer) attempt(ctx context.Context, request *asking, answer *api.Permits) error {
	body, err := json.Marshal(&request.PermitsRequest)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	return p.client.once(ctx, "POST", "/v1/permits", body, answer)
}

// awaited reports whether somebody waits.
func (p *Pacer) awaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Len() > 0
}
