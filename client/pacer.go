package client

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"capper/client/api"
)

// PacerConfig holds the settings of a Pacer. If a field of PacerConfig is zero, the default in the field's comment
// applies.
type PacerConfig struct {
	Pacers    []string // pacers that must all grant a send, 1 to api.MaxPacers. Required
	MessageID string   // required by pacers that count each message separately
	Key       string   // required by pacers that count each key (sender number, tenant …) separately
	Share     string   // share (reserved part) of one of the Pacers; "": the API key's own share, if any

	// MaxWait is the longest wait that a caller accepts. A caller that would wait longer gets a QueueTooLongError at
	// once. The max_wait of each of the Pacers (30 s unless configured) is a further limit of the wait. 0: callers wait
	// without a limit, and the Pacer reserves slots at most a second ahead. While a send waits for one slow pacer,
	// other senders may use earlier slots of the other Pacers. If a pacer has shares (reserved parts), a call without a
	// share gets only slots that are near. For a later slot, the Pacer requests the permit again when the slot is near.
	MaxWait time.Duration
	// Ahead is the time by which the Pacer requests permits before their use. The default is 100 ms. The Pacer adds the
	// time of two round trips to Ahead.
	Ahead time.Duration
	// Expected returns the total number of permits that the callers need since NewPacer, as far as the callers know.
	// The Pacer requests no permits in advance beyond this number, because unused permits of a limit without a rate are
	// lost. Expected must not wait for the Pacer. If Expected is nil, the Pacer expects that callers continue at the
	// same rate.
	Expected func() int64
	// OnRetry receives the error of each failed call that is retried. OnRetry must not wait for the Pacer. If OnRetry
	// is nil, the Pacer drops the errors.
	OnRetry func(error)
	// OnAnswer is called at the first response after failed calls. OnAnswer must not wait for the Pacer. If OnAnswer is
	// nil, the Pacer makes no call.
	OnAnswer func()
}

// The method "check" returns an error if the settings of the Pacer are invalid.
func (cfg *PacerConfig) check() error {
	switch {
	case len(cfg.Pacers) == 0 || len(cfg.Pacers) > api.MaxPacers:
		return fmt.Errorf("client.PacerConfig.Pacers must name 1 to %d pacers, got %d",
			api.MaxPacers, len(cfg.Pacers))
	case slices.Contains(cfg.Pacers, ""):
		return errors.New("client.PacerConfig.Pacers: a pacer name must not be empty")
	case cfg.MaxWait < 0 || cfg.MaxWait > api.MaxWait:
		return fmt.Errorf("client.PacerConfig.MaxWait must be 0 to %v, got %v", api.MaxWait, cfg.MaxWait)
	case cfg.Ahead < 0 || cfg.Ahead > maxAhead:
		return fmt.Errorf("client.PacerConfig.Ahead must be 0 to %v, got %v", maxAhead, cfg.Ahead)
	}
	return nil
}

const (
	defaultAhead = 100 * time.Millisecond
	maxAhead     = 10 * time.Second
)

// Pacer lets callers start sends at the rate of the service's pacers, which limit all senders together. A Pacer
// requests permits in advance and in batches, and gives them to callers in order of arrival. A Pacer is safe for
// concurrent use, and makes no API calls while no caller waits. Close gives unused permits back to the service.
type Pacer struct {
	client *Client
	cfg    PacerConfig

	mu      sync.Mutex
	waiting list.List // list of *waiter, in order of arrival
	wanted  int       // permits that waiting callers still need
	stock   stock
	dropped int64 // permits that nobody used in time
	given   int64 // permits that callers got
	demand  demand
	timer   *time.Timer // fires at the time of the next action while a caller waits

	fetching context.CancelFunc // cancels the running call; nil: no call runs
	open     *asking            // request without a response, which is repeated
	failing  bool               // the last attempt of the running call failed
	quickest time.Duration      // shortest round trip of the last responses; 0: no response yet
	refused  refusal
	idle     chan struct{} // closed when the last call has ended; nil: the Pacer is open

	life      context.Context    // ends when the Pacer is closed
	stop      context.CancelFunc // ends life
	leaseless bool               // the service does not support leases
}

// The type waiter is a caller that waits for permits of a Pacer.
type waiter struct {
	least, most int // permits that the caller needs, and the maximum that it takes
	since       time.Time
	got         int
	last        taken         // permits that the caller got last
	done        chan struct{} // closed when the caller may start or err is set
	err         error
}

// The method "lacks" returns the number of permits that the waiting caller still needs.
func (w *waiter) lacks() int { return max(w.least-w.got, 0) }

// NewPacer returns a Pacer that uses the client c. NewPacer does not call the service yet.
func NewPacer(c *Client, cfg PacerConfig) (*Pacer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Ahead = cmp.Or(cfg.Ahead, defaultAhead)
	cfg.Pacers = slices.Clone(cfg.Pacers)
	p := &Pacer{client: c, cfg: cfg, demand: demand{ahead: cfg.Ahead}}
	p.life, p.stop = context.WithCancel(context.Background())
	p.timer = time.AfterFunc(time.Hour, p.tick)
	p.timer.Stop()
	return p, nil
}

// The method Wait blocks until one send may start. The method Wait works like WaitN with n = 1.
func (p *Pacer) Wait(ctx context.Context) error { return p.WaitN(ctx, 1) }

// WaitN blocks until n sends may start together. The argument n (the number of sends) is from 1 to api.MaxPermits and
// should be small compared to the limits of the pacers. WaitN delays all n sends until the slot (start time) of the
// last permit, so most of the sends start later than the pacer requires. Because the n sends start together, a limit's
// window may contain up to n-1 more sends than the limit's max. A caller that can send fewer than n messages at a time
// should use WaitUpTo.
//
// The error of WaitN is the error of ctx, an *Error of the service, a *QueueTooLongError or ErrPacerClosed. After an
// error of WaitN, the caller must not send. WaitN repeats calls that failed because of the network, an overload or an
// outage until ctx ends, and never takes permits twice. WaitN also repeats a call with a late response, because the
// next response shows the slots (start times of sends) that are still in the future. A response is late if its round
// trip took more than 100 ms, and more than four times the quickest of the last round trips. The Pacer drops a permit
// that no caller has used one second after its slot. If the shortest window of the pacer's limits is below one second,
// the Pacer drops an unused permit after this window.
func (p *Pacer) WaitN(ctx context.Context, n int) error {
	_, err := p.wait(ctx, n, n)
	return err
}

// WaitUpTo blocks until at least one send may start, and returns the number of sends that may start, at most n.
// WaitUpTo is meant for senders of batches, and otherwise works like WaitN.
func (p *Pacer) WaitUpTo(ctx context.Context, n int) (int, error) {
	start, err := p.WaitStart(ctx, n)
	return start.Permits, err
}

// The type Start is a permission: the holder may start some sends until a certain time.
type Start struct {
	Permits int       // number of sends
	Until   time.Time // latest time at which a send may start with these permits
}

// WaitStart works like WaitUpTo, and also returns the time until which the sends may start. WaitStart is meant for
// senders that pass the sends to another program, which may be slow.
func (p *Pacer) WaitStart(ctx context.Context, n int) (Start, error) {
	w, err := p.wait(ctx, 1, n)
	return Start{w.got, w.last.until}, err
}

// The method Dropped returns the number of permits that the Pacer has dropped because no caller used them in time.
func (p *Pacer) Dropped() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(time.Now())
	return p.dropped
}

// The method "drop" removes unused permits that are too old, or that the service may have taken back.
func (p *Pacer) drop(now time.Time) {
	p.stock.lapse(now)
	p.dropped += int64(p.stock.drop(now))
}

func (p *Pacer) wait(ctx context.Context, least, most int) (w waiter, err error) {
	if most < 1 || most > api.MaxPermits {
		return w, fmt.Errorf("wait for permits: the number of permits must be 1 to %d, got %d",
			api.MaxPermits, most)
	}
	if err := ctx.Err(); err != nil {
		return w, err
	}
	w.least, w.most = least, most
	if waits, err := p.enqueue(&w); err != nil || !waits {
		return w, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		p.leave(&w, ctx.Err())
	}
	return w, w.err
}

// The method "enqueue" adds a caller to the queue of the Pacer, or returns false if the caller gets its permits without
// waiting.
func (p *Pacer) enqueue(w *waiter) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle != nil {
		return false, ErrPacerClosed
	}
	now := time.Now()
	p.drop(now)
	if err := p.refused.again(now); err != nil && p.wanted+w.least > p.stock.permits {
		return false, err
	}
	if p.waiting.Len() == 0 {
		if p.give(w, now); w.lacks() == 0 {
			p.ask(now)
			return false, nil
		}
	}
	w.since, w.done = now, make(chan struct{})
	p.waiting.PushBack(w)
	p.wanted += w.lacks()
	p.act(now)
	return true, nil
}

// The method "leave" removes a caller whose ctx has ended from the queue of the Pacer.
func (p *Pacer) leave(w *waiter, cause error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.waiting.Front(); e != nil; e = e.Next() {
		if e.Value == w {
			p.end(e, cause)
			break
		}
	}
	if p.waiting.Len() == 0 && p.fetching != nil {
		p.fetching()
	}
	p.act(time.Now())
}

// The method "end" stops the wait of one caller, and gives the caller an error.
func (p *Pacer) end(e *list.Element, err error) {
	w := p.waiting.Remove(e).(*waiter)
	p.wanted -= w.lacks()
	p.stock.putBack(w.got, w.last.latest, w.last.keep)
	p.given -= int64(w.got)
	w.got, w.err = 0, err
	close(w.done)
}

// The method "tick" runs when the Pacer's timer fires.
func (p *Pacer) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.act(time.Now())
}

// The method "act" gives permits to waiting callers, requests permits from the service if necessary, and sets the
// timer. The caller of act() and of the functions below act must hold the Pacer's lock.
func (p *Pacer) act(now time.Time) {
	p.drop(now)
	for e := p.waiting.Front(); e != nil; e = p.waiting.Front() {
		w := e.Value.(*waiter)
		before := w.lacks()
		p.give(w, now)
		p.wanted -= before - w.lacks()
		if w.lacks() > 0 {
			break
		}
		p.waiting.Remove(e)
		close(w.done)
	}
	next, ok := p.ask(now)
	if at, keeps := p.keepLeases(now); keeps && (!ok || at.Before(next)) {
		next, ok = at, true
	}
	switch {
	case p.waiting.Len() == 0:
		p.timer.Stop()
		return
	case len(p.stock.runs) > 0 && (!ok || p.stock.next().Before(next)):
		next, ok = p.stock.next(), true
	}
	if ok {
		p.timer.Reset(next.Sub(now))
	}
}

// The method "give" passes unused permits whose slot (start time) has come to a waiting caller.
func (p *Pacer) give(w *waiter, now time.Time) {
	if t := p.stock.take(now, w.most-w.got); t.permits > 0 {
		w.got, w.last = w.got+t.permits, t
		p.demand.used += t.permits
		p.given += int64(t.permits)
	}
}

// The method "refuse" returns the error err to waiting callers for whom the Pacer has too few permits. Callers that
// began to wait after the time "since" continue to wait.
func (p *Pacer) refuse(since time.Time, err error) {
	left := p.stock.permits
	for e := p.waiting.Front(); e != nil; {
		this, w := e, e.Value.(*waiter)
		switch e = e.Next(); {
		case w.since.After(since):
			return
		case w.lacks() <= left:
			left -= w.lacks()
		default:
			p.end(this, err)
		}
	}
}
