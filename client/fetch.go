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

// ErrQueueTooLong matches every QueueTooLongError in errors.Is.
var ErrQueueTooLong = errors.New("the queue is too long")

// QueueTooLongError reports that a send would wait longer than PacerConfig.MaxWait, or than a pacer's own max_wait.
// Another provider may be quicker.
type QueueTooLongError struct {
	Wait  time.Duration // until the next send could start
	Pacer string        // pacer that causes the wait
	Limit string        // limit that causes the wait: its window, "rate", "queue" or "share"
}

func (e *QueueTooLongError) Error() string {
	wait := e.Wait.Round(time.Millisecond)
	if e.Limit == api.LimitRate || e.Limit == api.LimitQueue || e.Limit == api.LimitShare {
		return fmt.Sprintf("pacer %s (%s): %v: %v", e.Pacer, e.Limit, ErrQueueTooLong, wait)
	}
	return fmt.Sprintf("pacer %s: its limit %s is used up for %v", e.Pacer, e.Limit, wait)
}

// Unwrap returns ErrQueueTooLong.
func (e *QueueTooLongError) Unwrap() error { return ErrQueueTooLong }

// refusal is a QueueTooLongError that the Pacer reuses for a short time, so that not every caller has to ask the
// service for the length of the queue.
type refusal struct {
	err   *QueueTooLongError
	at    time.Time
	until time.Time
}

// again returns the refusal with the remaining wait, or nil when the refusal no longer applies.
func (r *refusal) again(now time.Time) error {
	if r.err == nil || !now.Before(r.until) {
		return nil
	}
	e := *r.err
	e.Wait -= now.Sub(r.at)
	return &e
}

// demand decides how many permits to request and when. It aims at the permits that callers use within Ahead plus two
// round trips.
type demand struct {
	ahead time.Duration
	asked time.Time     // time of the last request for permits
	last  int           // number of permits in the last request
	used  int           // permits that were used since then
	trip  time.Duration // longest round trip of an answer, decaying slowly
	room  []limitRoom   // from the last answer
	pause time.Time     // until then, permits are requested only for waiting callers
}

// limitRoom is the number of permits that a limit still allows.
type limitRoom struct {
	left, max int
	window    time.Duration
}

// horizon returns the time for which one batch of permits should last.
func (d *demand) horizon() time.Duration { return d.ahead + 2*d.trip }

// lead returns the time before the end of the stock at which the next batch is requested.
func (d *demand) lead() time.Duration { return d.ahead/2 + 2*d.trip }

// batch returns the expected use of permits within the horizon, from the use since the last request. A batch is at
// most twice the last one. Near a limit, it is at most the number that the limit allows within the horizon, so that
// other senders get later permits.
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

// learn records the round trip time of an answer and its information about limits.
func (d *demand) learn(answer *timely) {
	d.trip = min(max(answer.trip(), d.trip*7/8), time.Second)
	d.room = d.room[:0]
	for _, pacer := range answer.Pacers {
		if window, err := time.ParseDuration(pacer.Window); err == nil && pacer.Used != nil && window > 0 {
			d.room = append(d.room, limitRoom{pacer.Max - *pacer.Used, pacer.Max, window})
		}
	}
}

// due returns the time at which the next permits must be requested, or false if only a new caller can require it. The
// argument lacking is the number of permits that waiting callers lack.
func (p *Pacer) due(lacking, batch int) (time.Time, bool) {
	d := &p.demand
	at := p.stock.last().Add(-d.lead())
	switch often := d.asked.Add(p.cfg.Ahead); {
	case p.fetching != nil || lacking <= 0 && -lacking*2 >= batch:
		return at, false
	case lacking > 0 && often.Before(at):
		at = often // one call for all callers since the last one
	}
	if at.Before(d.pause) {
		at = d.pause
	}
	return at, true
}

// ask requests permits if it is time to do so. If it is too early, ask returns the time of the next request, or false
// if only a new caller can require one.
func (p *Pacer) ask(now time.Time) (later time.Time, ok bool) {
	if p.idle != nil { // closed
		return now, false
	}
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

// asking is a request with the time of its first attempt.
type asking struct {
	api.PermitsRequest
	since   time.Time
	granted int // permits of the answer
	lease   leasing
}

// request returns a request for permits, either for waiting callers or only for the near future.
func (p *Pacer) request(now time.Time, permits int, awaited bool) *asking {
	wait := p.longest()
	if !awaited {
		wait = min(wait, p.demand.lead()+p.demand.horizon())
	}
	return &asking{PermitsRequest: api.PermitsRequest{
		Pacers: p.cfg.Pacers, MessageID: p.cfg.MessageID, Key: p.cfg.Key, Share: p.cfg.Share, Permits: permits,
		MaxWait: api.Wait(wait), RequestID: rand.Text(),
	}, since: now}
}

// placeAhead is the time ahead of now within which slots are reserved for callers without a maximum wait.
const placeAhead = time.Second

// longest returns the longest wait that a request accepts.
func (p *Pacer) longest() time.Duration {
	if p.cfg.MaxWait == 0 {
		return max(placeAhead, p.demand.lead()+p.demand.horizon())
	}
	return p.cfg.MaxWait
}

// fetch calls the service and processes the answer.
func (p *Pacer) fetch(ctx context.Context, request *asking) {
	answer, err := p.call(ctx, request)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.fetching()
	p.fetching, p.open = nil, nil
	defer p.ended()
	switch {
	case err == nil:
		p.demand.learn(answer)
		p.arrive(request, answer, now)
	case Passing(err): // no caller waits; the next caller makes the same request
		p.open, p.demand.pause = request, now.Add(p.cfg.Ahead)
	default:
		p.demand.pause = now.Add(p.cfg.Ahead)
		p.refuse(fmt.Errorf("wait for permits of %s: %w", strings.Join(p.cfg.Pacers, ", "), err))
	}
	p.act(now)
}

// arrive processes an answer.
func (p *Pacer) arrive(request *asking, answer *timely, now time.Time) {
	request.granted = answer.Granted
	p.stock.add(answer, request)
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
	case time.Duration(request.MaxWait) < p.cfg.MaxWait: // nobody waited; a caller now needs an early answer
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

// mostPause is the longest time until the client notices changed pacers.
const mostPause = 10 * time.Second

// until returns the pause before the next request, if permits become available after the time d. The pause varies at
// random, so that no client is always the last one.
func (p *Pacer) until(d time.Duration) time.Duration {
	d = min(max(d, p.cfg.Ahead), mostPause)
	return d/2 + mathrand.N(d/2+1)
}

// tripTimeout is the time limit of one attempt. The service reports an outage sooner than that.
const tripTimeout = 10 * time.Second

// timely is an answer with the earliest and latest time at which the service may have made it.
type timely struct {
	api.Permits
	sent, arrived time.Time
	usable        time.Duration // how long after its earliest possible slot a permit may be used
	inTime        time.Duration // longest round trip of an answer whose permits may be used
}

// trip returns the round trip time of the answer.
func (a *timely) trip() time.Duration { return a.arrived.Sub(a.sent) }

// promptly is the round trip time that never counts as late, unless a limit has a very short window.
const promptly = 100 * time.Millisecond

// bound sets the bounds for the age of the permits. An answer may take 100 ms, because sends that are later come
// together with sends of later slots, or four times the quickest of the last round trips, because permits would
// otherwise never arrive over a slow network. A part of the time remains for the use of the permits.
func (a *timely) bound(quickest time.Duration) {
	a.usable = max(a.UsableFor(), min(8*quickest, time.Second))
	a.inTime = max(min(promptly, a.usable/2), min(4*quickest, a.usable/4*3))
}

// lateError reports an answer that was held up.
type lateError struct{ took, most time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("the answer took %v, more than %v: its permits may be too old to be used",
		e.took.Round(time.Millisecond), e.most.Round(time.Millisecond))
}

// judge returns a *lateError for an answer that was held up. An answer that grants nothing is never late.
func (p *Pacer) judge(answer *timely) error {
	took := answer.trip()
	answer.bound(p.quickest)
	if p.quickest == 0 {
		p.quickest = took
	}
	p.quickest = max(min(took, 2*p.quickest), time.Microsecond)
	if took > answer.inTime && answer.Granted > 0 {
		return &lateError{took, answer.inTime}
	}
	return nil
}

// call repeats the request while a retry may help and a caller waits. A late answer is a reason to retry: the answer
// to the same request says which of its slots are still ahead.
func (p *Pacer) call(ctx context.Context, request *asking) (*timely, error) {
	for attempt := 1; ; attempt++ {
		answer := &timely{sent: time.Now()}
		err := p.attempt(ctx, request, &answer.Permits)
		if answer.arrived = time.Now(); err == nil {
			err = p.judge(answer)
		}
		p.recovered(err)
		if err == nil || ctx.Err() != nil || !Passing(err) || !p.awaited() {
			return answer, err
		}
		p.failing = true
		if p.cfg.OnRetry != nil {
			p.cfg.OnRetry(err)
		}
		if p.client.wait(ctx, attempt, err) != nil {
			return nil, err
		}
	}
}

// recovered calls OnAnswer for the first answer after failed attempts. A refusal counts as an answer.
func (p *Pacer) recovered(err error) {
	if !p.failing || err != nil && Passing(err) {
		return
	}
	p.failing = false
	if p.cfg.OnAnswer != nil {
		p.cfg.OnAnswer()
	}
}

// attempt calls the service once.
func (p *Pacer) attempt(ctx context.Context, request *asking, answer *api.Permits) error {
	body, err := json.Marshal(&request.PermitsRequest)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	return p.client.once(ctx, "POST", "/v1/permits", body, answer)
}

// awaited reports whether a caller waits for permits.
func (p *Pacer) awaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Len() > 0
}
