// Package counts keeps what is counted by message in Redis. Sends are counted by the scripts that record
// and remove them, in a hash of the message in each partition; answers lie in the partition of
// the message's text, beside an index of campaigns by their last call.
package redisstore

import (
	"context"
	"crypto/rand"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
)

// Config of Counts. Everything is required.
type messagesConfig struct {
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
type messageCounts struct {
	config messagesConfig
}

var _ messages.Store = (*messageCounts)(nil)

// New is the counts of a store.
func newMessages(config messagesConfig) *messageCounts { return &messageCounts{config: config} }

// keep is for how long counts are kept after the last call.
func (c *messageCounts) keep() time.Duration { return messages.KeepFor(c.config.Retention()) }

// AddAnswers adds what instances have answered; see messages.Store. A lost answer of Redis
// is asked for again and adds nothing twice. What an error names may have been added all the
// same, where no answer came until the end: given again, that counts twice.
func (c *messageCounts) AddAnswers(ctx context.Context, deltas []messages.Delta) error {
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
	left := &messages.NotAddedError{Err: err}
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
func (c *messageCounts) List(r *dispatch.Run, key messages.Key, at capping.Instant) {
	delta := &messages.Delta{Key: key, Answers: messages.Answers{Last: at}}
	r.AddOnce(&addOperation{counts: c, delta: delta, flush: newFlush(), begins: true},
		c.config.Partition(key.Message.Token()))
}

// answerKeys are where the answers about the message lie.
func (c *messageCounts) answerKeys(t capping.Token) script.AnswerKeys {
	prefix := c.config.Prefixes[c.config.Partition(t)]
	return script.AnswerKeys{Answers: script.AnswersKey(prefix, t), Index: script.IndexKey(prefix),
		Message: c.config.TextKey(t)}
}
