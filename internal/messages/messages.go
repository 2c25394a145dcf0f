package messages

import (
	"context"
	"time"

	"capper/internal/capping"
)

// The bounds of the time for which counts are kept after the last call. Between these bounds counts are kept
// as long as the logs.
const (
	MinKeep = 24 * time.Hour
	MaxKeep = 31 * 24 * time.Hour
)

// KeepFor returns how long counts are kept after the last call, for a store that keeps logs for the given
// retention.
func KeepFor(retention time.Duration) time.Duration { return min(max(retention, MinKeep), MaxKeep) }

// Key identifies what is counted together: one message on one channel.
type Key struct {
	Message capping.Message
	Channel capping.Channel // 0: no channel
}

// Counts holds the numbers of sends and answers of one message on one channel.
type Counts struct {
	Key
	Title string // of the message, on every channel; "": none
	Sends
	Answers
}

// Sends holds the numbers of log entries of a message. The numbers are exact unless AtLeast is true.
type Sends struct {
	Recorded int64 // recorded sends, each once
	Released int64 // recorded sends that were released later
	// AtLeast says that both numbers are lower bounds, because the store could not count every send.
	AtLeast bool
}

// Answers holds the numbers of decisions that callers received. The maps may be nil.
type Answers struct {
	Calls       int64
	Asked       int64 // users in all calls; a user counts once per call
	Allowed     int64 // allowed users, including replayed ones
	Replayed    int64
	Unavailable int64
	Denied      map[string]int64 // denied users by limit, or by "suppressed", "holdout" and "quiet"
	Suppressed  map[string]int64 // users denied by suppression, by set
	Shadow      map[string]int64 // allowed users whom a shadow limit would have denied, by limit
	Segments    map[string]SegmentAnswers
	First, Last capping.Instant // the first and the last call
	Configs     []string        // configuration versions in the order of first use
}

// AllWithheld reports whether suppression, the holdout or quiet hours denied every user, so that no log was judged.
func (a *Answers) AllWithheld() bool {
	var withheld int64
	for _, by := range []capping.Reason{capping.BySuppression, capping.ByHoldout, capping.ByQuiet} {
		withheld += a.Denied[by.Name()]
	}
	return a.Asked > 0 && withheld == a.Asked
}

// Begins reports whether the answers begin the counts of a message that is not counted yet: activity, those of a bulk
// call, and those about users who were all withheld. No filter call reaches the store for such users, so that the
// memory decides here whether the store counts the message.
func (d *Delta) Begins(memory *capping.MessageMemory) bool {
	return IsActivity(d.Message) || d.Asked >= capping.BulkUsers || d.AllWithheld() && memory.KeepSends(d.Message, 0)
}

// SegmentAnswers holds the numbers of decisions for users of one segment.
type SegmentAnswers struct{ Asked, Allowed, Denied int64 }

// Delta holds answers to add to the counts of a key.
type Delta struct {
	Key
	Answers
}

// Store keeps the counts of messages. capping.As finds a Store in a capping.Store. A Store is safe for concurrent
// use, and every method returns within the deadline of ctx.
//
// The store counts a message from the first call whose message it remembers (capping.MessageMemory), even when the call
// denied every user. A merge with capping.Merge.Counted starts the counts too. A merge counts as a call without
// answers, which changes Last, to the hour, but not First.
type Store interface {
	// AddAnswers adds the answers of instances to the counts. Of a message that is not counted yet, AddAnswers
	// drops a delta that does not begin the counts, see Delta.Begins. After an error some or all deltas may be
	// missing. A
	// *NotAddedError lists the deltas to add again.
	AddAnswers(ctx context.Context, deltas []Delta) error
	// ListMessages returns a page of the messages that the query selects, in its order. A message that is called
	// between two pages moves, so that it may be on both or on none.
	ListMessages(ctx context.Context, q Query) (Page, error)
	// MessageCounts returns the counts of the message, one for each channel, in the order of channel numbers. No
	// counts are not an error.
	MessageCounts(ctx context.Context, message capping.Message) ([]Counts, error)
	// SetTitle replaces the title of the message, which is durable afterwards; "" removes it. A message may have a
	// title before its first call. The title is kept as long as the counts, and for the same time when no call
	// follows. A title of a message that the store would not count is ErrNotRemembered.
	SetTitle(ctx context.Context, message capping.Message, title string) error
	// Title returns the title of the message, even if the message is not counted; "": none.
	Title(ctx context.Context, message capping.Message) (string, error)
}

// NotAddedError lists the deltas that may be missing in the store. All other deltas were added.
type NotAddedError struct {
	Deltas []Delta
	Err    error
}

func (e *NotAddedError) Error() string { return e.Err.Error() }
func (e *NotAddedError) Unwrap() error { return e.Err }
