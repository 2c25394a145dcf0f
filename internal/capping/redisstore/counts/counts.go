// Package counts keeps what is counted by message in Redis. Sends are counted by the scripts that record
// and remove them, in a hash of the message in each partition; answers lie in the partition of
// the message's text, beside an index of campaigns by their last call.
package counts

import (
	"context"
	"crypto/rand"
	"time"

	"capper/internal/campaign"
	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
)

// Config of Counts. Everything is required.
type Config struct {
	Dispatcher *dispatch.Dispatcher
	Scripts    script.Scripts
	Prefixes   []string                   // of keys, by partition
	Partition  func(t capping.Token) int  // of a message's text
	TextKey    func(capping.Token) string // of it
	Retention  func() time.Duration       // for which logs are kept
	// Perform does the work, and turns the faults of its run into an error.
	Perform func(work func() *dispatch.Run) error
}

// Counts keeps counts by message. It is safe for concurrent use.
type Counts struct {
	config Config
}

var _ campaign.Store = (*Counts)(nil)

// New is the counts of a store.
func New(config Config) *Counts { return &Counts{config: config} }

// keep is for how long counts are kept after the last call.
func (c *Counts) keep() time.Duration { return campaign.KeepFor(c.config.Retention()) }

// AddAnswers adds what instances have answered; see campaign.Store. A lost answer of Redis
// is asked for again and adds nothing twice. What an error names may have been added all the
// same, where no answer came until the end: given again, that counts twice.
func (c *Counts) AddAnswers(ctx context.Context, deltas []campaign.Delta) error {
	if len(deltas) == 0 {
		return nil
	}
	adds := make([]addOperation, len(deltas))
	err := c.config.Perform(func() *dispatch.Run {
		r := c.config.Dispatcher.NewRun(nil, false)
		r.Faults.What = "some of what was answered by message is"
		for i := range adds {
			adds[i] = addOperation{counts: c, delta: &deltas[i], flush: newFlush(),
				begins: deltas[i].Asked >= capping.BulkUsers}
			r.Add(&adds[i], c.config.Partition(deltas[i].Message.Token()))
		}
		r.Do(ctx)
		return r
	})
	if err == nil {
		return nil
	}
	left := &campaign.NotAddedError{Err: err}
	for i := range adds {
		if !adds[i].added {
			left.Deltas = append(left.Deltas, deltas[i])
		}
	}
	return left
}

// newFlush is a name that no other flush has.
func newFlush() (flush [script.FlushSize]byte) {
	_, _ = rand.Read(flush[:]) // never fails
	return flush
}

// List puts into the run that the campaign was called then, by who had no answer about users: so the
// index has it. Twice is once. Where that fails the campaign is counted and not listed.
func (c *Counts) List(r *dispatch.Run, key campaign.Key, at capping.Instant) {
	delta := &campaign.Delta{Key: key, Answers: campaign.Answers{Last: at}}
	r.AddOnce(&addOperation{counts: c, delta: delta, flush: newFlush(), begins: true},
		c.config.Partition(key.Message.Token()))
}

// answerKeys are where the answers about the message lie.
func (c *Counts) answerKeys(t capping.Token) script.AnswerKeys {
	prefix := c.config.Prefixes[c.config.Partition(t)]
	return script.AnswerKeys{Answers: script.AnswersKey(prefix, t), Index: script.IndexKey(prefix),
		Message: c.config.TextKey(t)}
}
