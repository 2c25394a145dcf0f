package messages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
	"capper/internal/parallel"
)

// Counter counts the decisions of answered calls in memory, and adds the counts to a store once a second. A Counter is
// safe for concurrent use.
type Counter struct {
	store  Store
	logger *slog.Logger
	lost   prometheus.Counter

	flushing chan struct{} // holds one token, which the flushing goroutine takes
	mu       sync.Mutex
	gathered map[Key]*Answers
	dropped  int64 // number of users not counted since the last flush, because the counter was full
	failing  bool  // the last write to the store failed
}

// mostKeys and smallKeys limit the number of pairs of message and channel for which a Counter collects counts between
// two writes to the store. The lower limit smallKeys applies to calls with few users, because a store does not count
// most of their messages.
const (
	mostKeys  = 20_000
	smallKeys = 4_000
)

// flushEvery is the interval between two writes of the counts to the store, and flushWithin is the timeout of one
// write.
const (
	flushEvery  = time.Second
	flushWithin = 5 * time.Second
)

// NewCounter returns a Counter that writes its counts to the store. The arguments "logger" and "registerer" of
// NewCounter may be nil.
func NewCounter(store Store, logger *slog.Logger, registerer prometheus.Registerer) (*Counter, error) {
	if store == nil {
		return nil, errors.New("message counter: the store must be set")
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	c := &Counter{
		store: store, logger: logger, flushing: make(chan struct{}, 1), gathered: make(map[Key]*Answers),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "capper_message_answers_lost_total",
			Help: "Users whose decisions are missing in the statistics of messages, because calls named too many " +
				"different messages. The decisions themselves are correct.",
		}),
	}
	if registerer == nil {
		return c, nil
	}
	return c, registerer.Register(c.lost)
}

// The method Add counts the decisions of one call with the given number of users. The method Add collects the counts
// for a later write to the store. The argument "told" is a function that adds the decisions of the call directly to the
// collected counts. Most calls therefore need no memory for counts. Other calls of Add wait while the function "told"
// runs. If the Counter already has counts for too many messages, Add drops the counts of the call, and does not call
// the function "told".
func (c *Counter) Add(key Key, asked int64, told func(to *Answers)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := c.gathered[key]
	if to == nil {
		if len(c.gathered) >= smallKeys && !IsActivity(key.Message) &&
			(len(c.gathered) >= mostKeys || asked < capping.BulkUsers) {
			c.dropped += asked
			return
		}
		to = new(Answers)
		c.gathered[key] = to
	}
	told(to)
}

// The method Run writes the collected counts to the store once a second until ctx ends, and then once more.
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

// flushWithin writes the collected counts to the store with a timeout. The method flushWithin logs when the writes
// begin to fail, and when they succeed again.
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

// The method Flush adds the collected counts to the store. The Counter keeps counts that the store could not add for
// the next Flush.
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

// putBack takes counts that could not be written to the store, and adds them to the collected counts again. The method
// putBack copies the counts, because the store may still read the originals.
func (c *Counter) putBack(deltas []Delta) {
	for i := range deltas {
		again := &deltas[i].Answers
		c.Add(deltas[i].Key, again.Asked, func(to *Answers) { to.Add(again) })
	}
}

// ListMessages first writes the counts of this instance to the store, and then lists the store's messages; see Store.
// ListMessages leaves out artificial messages, which hold the number of decisions of an hour (Activity).
func (c *Counter) ListMessages(ctx context.Context, q Query) (Page, error) {
	if err := c.Flush(ctx); err != nil && ctx.Err() != nil {
		return Page{}, err
	}
	match := q.Match
	q.Match = func(key Key) bool { return !IsActivity(key.Message) && (match == nil || match(key)) }
	return c.store.ListMessages(ctx, q)
}

// MessageCounts first writes the counts of this instance to the store, and then returns the store's counts of the
// message; see Store.
func (c *Counter) MessageCounts(ctx context.Context, message capping.Message) ([]Counts, error) {
	if err := c.Flush(ctx); err != nil && ctx.Err() != nil {
		return nil, err
	}
	return c.store.MessageCounts(ctx, message)
}

// SetTitle replaces the title of the message that the store keeps; see Store.
func (c *Counter) SetTitle(ctx context.Context, message capping.Message, title string) error {
	return c.store.SetTitle(ctx, message, title)
}

// titlesAtOnce is the maximum number of message titles that Titles reads from the store at the same time.
const titlesAtOnce = 64

// Titles returns the titles of the given messages. The method Titles omits messages without a title. A message without
// counts can also have a title. The method Titles reads several titles at the same time, so that a store on several
// servers combines the reads into a few round trips. If a read fails, Titles starts no further reads, and returns the
// error with the titles that it has already read.
func (c *Counter) Titles(ctx context.Context, of []capping.Message) (map[capping.Message]string, error) {
	var mu sync.Mutex
	var failed error
	titles := make(map[capping.Message]string)
	parallel.AtMost(titlesAtOnce, len(of), func(i int) {
		mu.Lock()
		done := failed != nil
		mu.Unlock()
		if done {
			return
		}
		title, err := c.store.Title(ctx, of[i])
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = cmp.Or(failed, err)
		} else if title != "" {
			titles[of[i]] = title
		}
	})
	return titles, failed
}
