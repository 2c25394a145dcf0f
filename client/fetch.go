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

// ErrQueueTooLong is the error that every *QueueTooLongError wraps: errors.Is finds it.
var ErrQueueTooLong = errors.New("the queue is too long")

// QueueTooLongError reports that a send would wait longer than PacerConfig.MaxWait, or than a pacer's own max_wait.
// After a QueueTooLongError, the caller may send through another message provider instead.
type QueueTooLongError struct {
	Wait  time.Duration // time until the next send could start
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

// The type refusal is a QueueTooLongError that the Pacer returns to further callers for a short time, without another
// call to the service.
type refusal struct {
	err   *QueueTooLongError
	at    time.Time
	until time.Time
}

// The method "again" returns the stored QueueTooLongError with the remaining wait, or nil when the stored error no
// longer applies.
func (r *refusal) again(now time.Time) error {
	if r.err == nil || !now.Before(r.until) {
		return nil
	}
	e := *r.err
	e.Wait -= now.Sub(r.at)
	return &e
}

// The type demand computes the time and the size of a Pacer's next request for permits. A request for permits asks for
// the permits that callers will probably use within the time Ahead plus two round trips.
type demand struct {
	ahead time.Duration
	asked time.Time     // time of the last request for permits
	last  int           // number of permits in the last request
	used  int           // permits that were used since the last request
	trip  time.Duration // longest round trip of a response, decaying slowly
	room  []limitRoom   // free permits of each limit, according to the last response
	pause time.Time     // until then, permits are requested only for waiting callers
}

// limitRoom is the number of permits that a limit of a pacer still allows at present.
type limitRoom struct {
	left, max int
	window    time.Duration
}

// The method horizon returns the time for which the permits of one request should last.
func (d *demand) horizon() time.Duration { return d.ahead + 2*d.trip }

// The method "lead" returns a duration: the Pacer requests the next batch of permits this long before the slot (start
// time) of its last unused permit.
func (d *demand) lead() time.Duration { return d.ahead/2 + 2*d.trip }

// The method batch returns the number of permits to request: the number that callers will probably use within the
// horizon (the planned period). The method batch computes the number of permits from the permits that were used since
// the last request. The result is at most twice the number of permits in the last request. If a limit of the pacer is
// nearly reached, the result is at most the number of permits that the limit allows within the horizon. Other senders
// get the permits that a smaller batch leaves out.
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

// The method "learn" stores the round trip time of a response, and the used part of each limit according to the
// response.
func (d *demand) learn(answer *timely) {
	d.trip = min(max(answer.trip(), d.trip*7/8), time.Second)
	d.room = d.room[:0]
	for _, pacer := range answer.Pacers {
		if window, err := time.ParseDuration(pacer.Window); err == nil && pacer.Used != nil && window > 0 {
			d.room = append(d.room, limitRoom{pacer.Max - *pacer.Used, pacer.Max, window})
		}
	}
}

// The method "due" returns the time of the next request for permits, or false if no request is needed until a new
// caller arrives. The argument "lacking" of the method "due" is the number of permits that waiting callers still need.
func (p *Pacer) due(lacking, batch int) (time.Time, bool) {
	d := &p.demand
	at := p.stock.last().Add(-d.lead())
	switch often := d.asked.Add(p.cfg.Ahead); {
	case p.fetching != nil || lacking <= 0 && -lacking*2 >= batch:
		return at, false
	case lacking > 0 && often.Before(at):
		at = often // one call for all callers that arrived since the last call
	}
	if at.Before(d.pause) {
		at = d.pause
	}
	return at, true
}

// ask() starts a request for permits if the time for a request has come. If the time for a request has not come yet,
// ask() returns the time of the next request. If no request is needed until a new caller arrives, ask() returns false.
func (p *Pacer) ask(now time.Time) (later time.Time, ok bool) {
	if p.idle != nil { // closed
		return now, false
	}
	lacking, batch := p.wanted-p.stock.permits, p.demand.batch(now)
	if p.cfg.Expected != nil {
		batch = min(batch, int(max(0, p.cfg.Expected()-p.given)))
	}
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

// The type "asking" is a request for permits, with the time of its first attempt.
type asking struct {
	api.PermitsRequest
	since    time.Time
	repeated bool // the next attempt is a repetition
	granted  int  // number of permits in the response
	lease    leasing
}

// The method "request" returns a new request for permits. If no caller waits, the argument "awaited" is false, and the
// request accepts only slots (start times) in the near future.
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

// If callers have no maximum wait, a request accepts every slot (start time) that is at most placeAhead in the future.
const placeAhead = time.Second

// The method "longest" returns the longest wait for a slot (start time) that a request for permits accepts.
func (p *Pacer) longest() time.Duration {
	if p.cfg.MaxWait == 0 {
		return max(placeAhead, p.demand.lead()+p.demand.horizon())
	}
	return p.cfg.MaxWait
}

// The method "fetch" requests permits from the service and processes the response.
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
	case Passing(err): // no caller waits; the next caller repeats the request
		p.open, p.demand.pause = request, now.Add(p.cfg.Ahead)
	default:
		p.demand.pause = now.Add(p.cfg.Ahead)
		p.refuse(now, fmt.Errorf("wait for permits of %s: %w", strings.Join(p.cfg.Pacers, ", "), err))
	}
	p.act(now)
}

// The method "arrive" adds the permits of a response to the unused permits of the Pacer. If the service refused some
// permits, the method "arrive" sets the time of the next request, or the error for waiting callers.
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
	case answer.Replayed: // the service refused the rest at the first attempt; a new request may get it
		p.demand.pause = now.Add(p.until(0))
		return
	case p.cfg.MaxWait == 0 || answer.LimitedBy == nil:
		p.demand.pause = now.Add(p.until(wait - p.longest()))
		return
	case time.Duration(request.MaxWait) < p.cfg.MaxWait: // nobody waited; a caller now needs an early response
		p.demand.pause = now.Add(p.until(0))
		return
	}
	long := &QueueTooLongError{wait, answer.LimitedBy.Pacer, answer.LimitedBy.Limit}
	if answer.LimitedBy.TooEarly {
		p.demand.pause = now.Add(p.until(wait - placeAhead))
		p.refuse(now.Add(wait-p.cfg.MaxWait), long)
		return
	}
	holds := wait
	if wait > p.cfg.MaxWait {
		holds -= p.cfg.MaxWait
	}
	p.refused.err, p.refused.at, p.refused.until = long, now, now.Add(min(p.cfg.Ahead, holds))
	p.demand.pause = p.refused.until
	p.refuse(now, long)
}

// mostPause is the maximum pause between two requests for permits while callers wait, so that a Pacer soon notices
// changed limits.
const mostPause = 10 * time.Second

// The method "until" returns the pause before the next request for permits, if the service expects free slots (start
// times) after the time d. The pause is partly random, so that the same client is not always the last to request
// permits.
func (p *Pacer) until(d time.Duration) time.Duration {
	d = min(max(d, p.cfg.Ahead), mostPause)
	return d/2 + mathrand.N(d/2+1)
}

// tripTimeout is the time limit of one request for permits. The service reports an outage of its store to the client
// in less time than tripTimeout.
const tripTimeout = 10 * time.Second

// The type "timely" is a response with permits, together with the earliest and the latest time at which the service may
// have granted these permits.
type timely struct {
	api.Permits
	sent, arrived time.Time
	usable        time.Duration // time for which a permit may be used, from its earliest possible slot
	inTime        time.Duration // longest round trip of a response whose permits may be used
}

// The method "trip" returns the round trip time of the response.
func (a *timely) trip() time.Duration { return a.arrived.Sub(a.sent) }

// If the round trip of a request took at most the time "promptly", the Pacer uses the permits in the response. If a
// limit has a very short window, the permitted round trip is shorter.
const promptly = 100 * time.Millisecond

// The method "bound" computes the maximum age of the permits of a response, and the maximum round trip time of the
// response. A response with permits is in time if it arrives within 100 ms after the request. If the Pacer used permits
// of a late response, its sends could coincide with sends of other senders, who have later slots (start times). Over a
// slow network, a response may also take up to four times as long as the quickest of the last round trips. Without the
// exception for slow networks, every response over a slow network would be too late, and the Pacer could not use the
// permits.
func (a *timely) bound(quickest time.Duration) {
	a.usable = max(a.UsableFor(), min(8*quickest, time.Second))
	a.inTime = max(min(promptly, a.usable/2), min(4*quickest, a.usable/4*3))
}

// lateError reports that a response with permits arrived too late for the permits to be used.
type lateError struct{ took, most time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("the answer took %v, more than %v: its permits may be too old to be used",
		e.took.Round(time.Millisecond), e.most.Round(time.Millisecond))
}

// The method "judge" returns a *lateError if a response with permits took longer than its field inTime. A response
// without permits is never late.
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

// The method "call" sends a request for permits to the service. If the error may be temporary and a caller waits, the
// method "call" repeats the request. The method "call" also repeats the request after a late response, because the next
// response says which slots (start times) are still in the future.
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

// The method "recovered" calls PacerConfig.OnAnswer for the first response after failed attempts. A response that
// rejects the request also counts as the first response.
func (p *Pacer) recovered(err error) {
	if !p.failing || err != nil && Passing(err) {
		return
	}
	p.failing = false
	if p.cfg.OnAnswer != nil {
		p.cfg.OnAnswer()
	}
}

// The method "attempt" sends one request for permits to the service, without retries. A repeated request has a lease
// (time limit for unused permits) from the start. Without the lease, the service would keep the permits for the sender
// until their slots (start times), even if the sender dies.
func (p *Pacer) attempt(ctx context.Context, request *asking, answer *api.Permits) error {
	leased := request.repeated && time.Duration(request.MaxWait) > leaseFor && p.leases()
	request.repeated = true
	body := request.PermitsRequest
	if leased {
		body.Lease = api.Wait(leaseFor)
	}
	sent := time.Now()
	err := p.send(ctx, tripTimeout, &body, answer)
	switch {
	case !leased:
	case lacksLeases(err):
		p.mu.Lock()
		p.leaseless = true
		p.mu.Unlock()
		return p.attempt(ctx, request, answer)
	default:
		request.lease.called(sent, time.Now(), err)
	}
	return err
}

// The method "send" sends a request for permits to the service, and waits for the response at most for the given time.
func (p *Pacer) send(ctx context.Context, most time.Duration, request *api.PermitsRequest, answer *api.Permits) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return p.client.once(ctx, "POST", "/v1/permits", body, answer)
}

// The method "leases" reports whether the service supports leases of permits, as far as the Pacer knows.
func (p *Pacer) leases() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.leaseless
}

// The method "awaited" reports whether a caller waits for permits.
func (p *Pacer) awaited() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting.Len() > 0
}
