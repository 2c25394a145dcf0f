package messages

import (
	"context"
	"time"

	"capper/internal/capping"
)

// Counts are kept as long as the logs after the last call, but no shorter and no longer
// than these.
const (
	MinKeep = 24 * time.Hour
	MaxKeep = 31 * 24 * time.Hour
)

// KeepFor is how long counts are kept after the last call where logs are kept so long.
func KeepFor(retention time.Duration) time.Duration { return min(max(retention, MinKeep), MaxKeep) }

// Key names what is counted together: a message on a channel.
type Key struct {
	Message capping.Message
	Channel capping.Channel // 0: none
}

// Counts is what became of one message on one channel.
type Counts struct {
	Key
	Sends
	Answers
}

// Sends counts entries of the logs, exactly unless AtLeast is set.
type Sends struct {
	Recorded int64 // sends that were recorded, each once
	Released int64 // those of them that were given back
	// AtLeast: both numbers are lower bounds, since the store could not count every send.
	AtLeast bool
}

// Answers counts what callers were told. Maps may be nil.
type Answers struct {
	Calls       int64
	Asked       int64 // users, each in each call
	Allowed     int64 // replayed included
	Replayed    int64
	Unavailable int64
	Denied      map[string]int64 // by limit, or suppressed, holdout, quiet
	Suppressed  map[string]int64 // those denied by suppressed, by set
	Shadow      map[string]int64 // those allowed whom a shadow limit would have denied, by limit
	Segments    map[string]SegmentAnswers
	First, Last capping.Instant // calls
	Configs     []string        // versions of the configuration, in the order in which they were first seen
}

// SegmentAnswers counts answers about the users of one segment.
type SegmentAnswers struct{ Asked, Allowed, Denied int64 }

// Delta is answers that are to be added to those of a key.
type Delta struct {
	Key
	Answers
}

// Store keeps the counts; a capping.Store that does is found with capping.As.
// It is safe for concurrent use. Every method ends within the deadline of ctx.
//
// Counted is what the store remembers the message of, from the first call on whose
// message it keeps (capping.MessageMemory), also when that call was denied to all, and from the
// first merge on that counts (capping.Merge.Counted), which is a call without answers: it is
// what Last tells, to the hour, and First does not.
type Store interface {
	// AddAnswers adds what instances have answered. Of a message that is not counted yet,
	// those of a delta that asked for fewer than capping.BulkUsers are left out. An error is that
	// some or all may not have been added: a *NotAddedError names which, so that what was added is
	// not given again.
	AddAnswers(ctx context.Context, deltas []Delta) error
	// ListMessages returns those that match and whose last call was at or after since, latest first, at
	// most max of them; more: there are others. A nil match is of all.
	ListMessages(ctx context.Context, since capping.Instant, max int, match func(Key) bool) (found []Counts, more bool,
		err error)
	// MessageCounts is the message's, one for each channel it was sent on, by number. None is no error.
	MessageCounts(ctx context.Context, message capping.Message) ([]Counts, error)
}

// NotAddedError is that some deltas may not have been added; all others have been.
type NotAddedError struct {
	Deltas []Delta
	Err    error
}

func (e *NotAddedError) Error() string { return e.Err.Error() }
func (e *NotAddedError) Unwrap() error { return e.Err }
