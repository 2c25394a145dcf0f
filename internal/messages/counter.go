package messages

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
)

// Counter gathers answers and adds them to a store, once a second together. It is safe
// for concurrent use.
type Counter struct {
	store  Store
	logger *slog.Logger
	lost   prometheus.Counter

	flushing chan struct{} // holds one: who flushes
	mu       sync.Mutex
	gathered map[Key]*Answers
	dropped  int64 // answers since the last flush for which there was no room
	failing  bool  // the last flush did
}

// The most campaigns whose answers are gathered between two flushes. Those of calls that
// name few users find less room, as a store counts few of those.
const (
	mostKeys  = 20_000
	smallKeys = 4_000
)

// Every how long answers are flushed, and how long that may take.
const (
	flushEvery  = time.Second
	flushWithin = 5 * time.Second
)

// NewCounter is a counter over the store. logger may be nil, and registerer too.
func NewCounter(store Store, logger *slog.Logger, registerer prometheus.Registerer) (*Counter, error) {
	if store == nil {
		return nil, errors.New("campaign: a counter must have a store")
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	c := &Counter{
		store: store, logger: logger, flushing: make(chan struct{}, 1), gathered: make(map[Key]*Answers),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "capper_message_answers_lost_total",
			Help: "Number of users whose result is missing from the counts of their message.",
		}),
	}
	if registerer == nil {
		return c, nil
	}
	return c, registerer.Register(c.lost)
}

// Add adds the answers of a call that asked for so many users: told adds them to what was
// gathered before, so that most calls need no memory of their own. It holds up other calls,
// and is not called where there is no room.
func (c *Counter) Add(key Key, asked int64, told func(to *Answers)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := c.gathered[key]
	if to == nil {
		if len(c.gathered) >= smallKeys && (len(c.gathered) >= mostKeys || asked < capping.BulkUsers) {
			c.dropped += asked
			return
		}
		to = new(Answers)
		c.gathered[key] = to
	}
	told(to)
}

// Run flushes once a second until ctx ends, and then once more.
func (c *Counter) Run(ctx context.Context) {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.flushWithin(ctx)
		case <-ctx.Done():
			c.flushWithin(context.WithoutCancel(ctx))
			return
		}
	}
}

// flushWithin flushes and tells operators when that begins to fail, and when it goes again.
func (c *Counter) flushWithin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	err := c.Flush(ctx)
	if (err != nil) == c.failing {
		return
	}
	if c.failing = err != nil; c.failing {
		c.logger.Warn("counts of messages are delayed: the results of calls are kept, and the update is retried",
			"error",
			err.Error())
		return
	}
	c.logger.Info("counts of messages are up to date again")
}

// Flush adds what was gathered to the store. What could not be added is gathered again.
func (c *Counter) Flush(ctx context.Context) error {
	select {
	case c.flushing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.flushing }()
	deltas := c.take()
	if len(deltas) == 0 {
		return nil
	}
	if err := c.store.AddAnswers(ctx, deltas); err != nil {
		if some := new(NotAddedError); errors.As(err, &some) {
			deltas = some.Deltas
		}
		c.putBack(deltas)
		return fmt.Errorf("flush answers: %w", err)
	}
	return nil
}

func (c *Counter) take() []Delta {
	c.mu.Lock()
	gathered, dropped := c.gathered, c.dropped
	c.gathered, c.dropped = make(map[Key]*Answers), 0
	c.mu.Unlock()
	if dropped > 0 {
		c.lost.Add(float64(dropped))
		c.logger.Debug("too many messages at once: results of some calls are not counted", "users", dropped)
	}
	deltas := make([]Delta, 0, len(gathered))
	for key, answers := range gathered {
		deltas = append(deltas, Delta{key, *answers})
	}
	return deltas
}

// putBack gathers deltas again. They are copied, as the store may still read them.
func (c *Counter) putBack(deltas []Delta) {
	for i := range deltas {
		again := &deltas[i].Answers
		c.Add(deltas[i].Key, again.Asked, func(to *Answers) { to.Add(again) })
	}
}

// ListMessages returns those of the store, with what this instance has answered; see Store.
func (c *Counter) ListMessages(ctx context.Context, since capping.Instant, most int, match func(Key) bool) ([]Counts,
	bool, error) {
	if err := c.Flush(ctx); err != nil && ctx.Err() != nil {
		return nil, false, err
	}
	return c.store.ListMessages(ctx, since, most, match)
}

// MessageCounts is the message's, with what this instance has answered; see Store.
func (c *Counter) MessageCounts(ctx context.Context, message capping.Message) ([]Counts, error) {
	if err := c.Flush(ctx); err != nil && ctx.Err() != nil {
		return nil, err
	}
	return c.store.MessageCounts(ctx, message)
}
