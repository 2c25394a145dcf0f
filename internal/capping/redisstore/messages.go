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

// messagesConfig is the configuration of messageCounts. Every field of messagesConfig must be set.
type messagesConfig struct {
	Dispatcher *dispatch.Dispatcher
	Scripts    script.Scripts
	Memory     *capping.MessageMemory
	Prefixes   []string                   // key prefixes, by partition
	Partition  func(t capping.Token) int  // partition of a message's text
	TextKey    func(capping.Token) string // key of a message's text
	Retention  func() time.Duration       // retention of the users' logs
	Clock      func() time.Time
	ClockSkew  time.Duration
	// Perform calls the function "work", which returns a run (the sending of commands), and returns the faults of this
	// run as one error.
	Perform func(work func() *dispatch.Run) error
}

// The type messageCounts keeps the counts of messages in Redis, and is safe for concurrent use.
type messageCounts struct {
	config messagesConfig
	mended mended
}

var _ messages.Store = (*messageCounts)(nil)

func newMessages(config messagesConfig) *messageCounts {
	return &messageCounts{config: config, mended: mended{working: make(chan struct{}, 1)}}
}

// The method "keep" returns the time for which the store keeps the counts of a message after the last call about the
// message.
func (c *messageCounts) keep() time.Duration { return messages.KeepFor(c.config.Retention()) }

// AddAnswers adds numbers of decisions to the stored counts of messages; see messages.Store. If a reply was lost,
// AddAnswers retries the command, and the script answers.lua adds the numbers only once. An error of AddAnswers lists
// the deltas (counts to add) whose addition the store did not confirm. If no reply arrived before the deadline, the
// script may have added the numbers of these deltas nevertheless. If the caller passes unconfirmed deltas (counts to
// add) again, the store may count their decisions twice.
func (c *messageCounts) AddAnswers(ctx context.Context, deltas []messages.Delta) error {
	if len(deltas) == 0 {
		return nil
	}
	adds := make([]addOperation, len(deltas))
	err := c.config.Perform(func() *dispatch.Run {
		r := c.config.Dispatcher.NewRun(nil, false)
		r.Faults.What = "some counts of messages are"
		for i := range adds {
			adds[i] = addOperation{counts: c, delta: &deltas[i], flush: newFlush(),
				begins: deltas[i].Begins(c.config.Memory)}
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

// newFlush returns a random name for one addition to decision counts. By the random name of an addition, the script
// answers.lua recognizes a repeated command.
func newFlush() (flush [script.FlushSize]byte) {
	_, _ = rand.Read(flush[:]) // never fails
	return flush
}

// The method List adds a campaign (message on a channel) to the index of messages after a call without decisions, such
// as a merge. A repeated command from List does not change the index. If the command fails, the store still counts the
// campaign, but lists of messages do not show the campaign.
func (c *messageCounts) List(r *dispatch.Run, key messages.Key, at capping.Instant) {
	delta := &messages.Delta{Key: key, Answers: messages.Answers{Last: at}}
	r.AddOnce(&addOperation{counts: c, delta: delta, flush: newFlush(), begins: true},
		c.config.Partition(key.Message.Token()))
}

// answerKeys returns the Redis keys of a command that changes a message's decision counts. The argument "last" of
// answerKeys is the time of the message's last call. The keys include the index of messages for the period that
// contains "last".
func (c *messageCounts) answerKeys(t capping.Token, last capping.Instant) script.AnswerKeys {
	prefix := c.config.Prefixes[c.config.Partition(t)]
	return script.AnswerKeys{Answers: script.AnswersKey(prefix, t), Index: script.IndexKey(prefix),
		Message: c.config.TextKey(t), Sizes: script.SizesKey(prefix, script.Period(last))}
}
