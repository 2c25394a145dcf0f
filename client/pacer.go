package client

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"capper/client/api"
)

// PacerConfig is what a Pacer is made of. Zero fields have the defaults written
// there.
type PacerConfig struct {
	Pacers    []string // all of which have to grant a send, 1 to api.MaxPacers. Required
	MessageID string   // required by pacers per message

	// MaxWait is the longest queue that a place is taken in: a longer one, or than the
	// pacers themselves allow, is a QueueTooLongError, at once. 0: it is waited however
	// long it takes, and places are taken a second ahead at most. A place is one in
	// the queues of all Pacers, so those behind it wait where one of them is slow.
	MaxWait time.Duration
	// Ahead is how much of what is being used is asked for ahead: 100 ms of it. With
	// round trips that are long against that it is more, by two of them.
	Ahead time.Duration
	// OnRetry is told of calls that failed and are repeated. It must not wait for
	// the Pacer. nil: nobody is told.
	OnRetry func(error)
	// OnAnswer is told when a call is answered after such ones, and must not wait
	// either. nil: nobody is told.
	OnAnswer func()
}

// check is why there is no such pacer.
func (cfg *PacerConfig) check() error {
	switch {
	case len(cfg.Pacers) == 0 || len(cfg.Pacers) > api.MaxPacers:
		return fmt.Errorf("client.PacerConfig.Pacers: must name 1 to %d pacers, got %d",
			api.MaxPacers, len(cfg.Pacers))
	case slices.Contains(cfg.Pacers, ""):
		return errors.New("client.PacerConfig.Pacers: a pacer name must not be empty")
	case cfg.MaxWait < 0 || cfg.MaxWait > api.MaxWait:
		return fmt.Errorf("client.PacerConfig.MaxWait: must be 0 to %v, got %v", api.MaxWait, cfg.MaxWait)
	case cfg.Ahead < 0 || cfg.Ahead > maxAhead:
		return fmt.Errorf("client.PacerConfig.Ahead: must be 0 to %v, got %v", maxAhead, cfg.Ahead)
	}
	return nil
}

const (
	defaultAhead = 100 * time.Millisecond
	maxAhead     = 10 * time.Second
)

// Pacer lets sends start at the pace of the service's pacers, which the whole fleet
// shares. It asks for permits ahead, in batches, and hands them out in the order
// in which callers came. It is safe for concurrent use, holds nothing that has to be
// closed, and calls nothing while nobody waits.
type Pacer struct {
	client *Client
	cfg    PacerConfig

	mu      sync.Mutex
	waiting list.List // of *waiter, in order of arrival
	wanted  int       // permits that those who wait lack
	stock   stock
	demand  demand
	timer   *time.Timer // for what is next to be done while somebody waits

	fetching context.CancelFunc // of the call under way; nil: there is none
	open     *asking            // whose answer never came; it is asked for again
	failing  bool               // the last attempt has failed; of the call under way
	refused  refusal
}

// waiter is a caller.
type waiter struct {
	least, most int // that it waits for, and takes if they are due
	got         int
	latest      time.Time     // slot of what it got
	done        chan struct{} // closed when it may start, or err is why not
	err         error
}

// lacks is how many permits it still waits for.
func (w *waiter) lacks() int { return max(w.least-w.got, 0) }

// NewPacer is a pacer of the service that c calls. It calls nothing yet.
func NewPacer(c *Client, cfg PacerConfig) (*Pacer, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Ahead == 0 {
		cfg.Ahead = defaultAhead
	}
	cfg.Pacers = slices.Clone(cfg.Pacers)
	p := &Pacer{client: c, cfg: cfg, demand: demand{ahead: cfg.Ahead}}
	p.timer = time.AfterFunc(time.Hour, p.tick)
	p.timer.Stop()
	return p, nil
}

// Wait returns when a send may start. See WaitN.
func (p *Pacer) Wait(ctx context.Context) error { return p.WaitN(ctx, 1) }

// WaitN returns when n sends may start together: at the slot of the last of their
// permits, never earlier. n is 1 to api.MaxPermits, and should be small against the
// limits of the pacers: as those of earlier slots go late, up to n-1 sends more than a
// limit's max may start within its window. Those who can send fewer use WaitUpTo.
//
// Its error is that of ctx; a refusal of the service (*Error); or a
// *QueueTooLongError. With an error nothing may be sent. Calls that failed on the
// way, or because the service is overloaded or away, are repeated until ctx ends,
// and nothing is taken twice.
func (p *Pacer) WaitN(ctx context.Context, n int) error {
	_, err := p.wait(ctx, n, n)
	return err
}

// WaitUpTo returns when a send may start, and how many of at most n may, for those
// who send in batches. Otherwise it is WaitN.
func (p *Pacer) WaitUpTo(ctx context.Context, n int) (int, error) { return p.wait(ctx, 1, n) }

func (p *Pacer) wait(ctx context.Context, least, most int) (int, error) {
	if most < 1 || most > api.MaxPermits {
		return 0, fmt.Errorf("wait for permits to send: the number of permits is %d and must be 1 to %d",
			most, api.MaxPermits)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	w := waiter{least: least, most: most}
	if waits, err := p.enqueue(&w); err != nil || !waits {
		return w.got, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		p.leave(&w, ctx.Err())
	}
	return w.got, w.err
}

// enqueue lets a caller wait; false: it need not.
func (p *Pacer) enqueue(w *waiter) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.stock.drop(now)
	if err := p.refused.again(now); err != nil && p.wanted+w.least > p.stock.permits {
		return false, err
	}
	if p.waiting.Len() == 0 {
		if p.give(w, now); w.lacks() == 0 {
			p.ask(now)
			return false, nil
		}
	}
	w.done = make(chan struct{})
	p.waiting.PushBack(w)
	p.wanted += w.lacks()
	p.act(now)
	return true, nil
}

// leave is what a caller does whose ctx has ended.
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

// end ends a waiting without having what was waited for.
func (p *Pacer) end(e *list.Element, err error) {
	w := p.waiting.Remove(e).(*waiter)
	p.wanted -= w.lacks()
	p.stock.putBack(w.got, w.latest)
	w.got, w.err = 0, err
	close(w.done)
}

// tick is the timer's.
func (p *Pacer) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.act(time.Now())
}

// act does what is to be done now and sets the timer for what is next. The caller
// holds the lock, here and below.
func (p *Pacer) act(now time.Time) {
	p.stock.drop(now)
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

// give gives a waiter what has become due.
func (p *Pacer) give(w *waiter, now time.Time) {
	if n, latest := p.stock.take(now, w.most-w.got); n > 0 {
		w.got, w.latest = w.got+n, latest
		p.demand.used += n
	}
}

// refuse ends with err those who wait and have no permits in the stock.
func (p *Pacer) refuse(err error) {
	left := p.stock.permits
	for e := p.waiting.Front(); e != nil; {
		this, lacks := e, e.Value.(*waiter).lacks()
		if e = e.Next(); lacks <= left {
			left -= lacks
			continue
		}
		p.end(this, err)
	}
}
