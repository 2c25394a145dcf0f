package messages

import (
	"context"
	"time"

	"capper/internal/capping"
)

// MinKeep and MaxKeep are the minimum and the maximum time for which a store keeps the counts of a message after the
// last call. Between MinKeep and MaxKeep, a store keeps the counts of a message for the same time as recorded sends.
const (
	MinKeep = 24 * time.Hour
	MaxKeep = 31 * 24 * time.Hour
)

// KeepFor returns the time for which a store keeps the counts of a message after the last call. The argument
// "retention" is the time for which the store keeps recorded sends.
func KeepFor(retention time.Duration) time.Duration { return min(max(retention, MinKeep), MaxKeep) }

// A Key identifies the sends and decisions that a store counts together: all sends and decisions of one message on one
// channel.
type Key struct {
	Message capping.Message
	Channel capping.Channel // 0: no channel
}

// Counts holds the numbers of sends and decisions of one message on one channel.
type Counts struct {
	Key
	Title string // title of the message, the same on every channel; "": no title
	Sends
	Answers
}

// Sends holds the numbers of recorded and released sends of a message. If AtLeast is false, the numbers of sends are
// exact.
type Sends struct {
	Recorded int64 // recorded sends; a repeated call does not count a send again
	Released int64 // recorded sends that were released later
	// AtLeast says that both numbers are lower bounds, because the store could not count every send.
	AtLeast bool
}

// Answers holds the number of calls about a message, and the numbers of decisions that the callers received. The maps
// may be nil.
type Answers struct {
	Calls       int64
	Asked       int64 // users in all calls; a user counts once in each call
	Allowed     int64 // allowed users, including replayed ones
	Replayed    int64
	Unavailable int64
	Denied      map[string]int64 // number of denied users by limit, or by "suppressed", "holdout" and "quiet"
	Suppressed  map[string]int64 // number of users that each suppression set denied
	Shadow      map[string]int64 // number of allowed users whom a limit in shadow mode would have denied, by limit
	Segments    map[string]SegmentAnswers
	First, Last capping.Instant // times of the first and the last call
	Configs     []string        // configuration versions in the order of first use
}

// AllWithheld reports whether suppression, the holdout (control group) or quiet hours denied every user of the calls,
// so that the store applied no limit.
func (a *Answers) AllWithheld() bool {
	var withheld int64
	for _, by := range []capping.Reason{capping.BySuppression, capping.ByHoldout, capping.ByQuiet} {
		withheld += a.Denied[by.Name()]
	}
	return a.Asked > 0 && withheld == a.Asked
}

// The method Begins reports whether these counts make a store begin to count the message. A store begins to count for
// three kinds of counts: the counts of an hour (Activity), counts with at least capping.BulkUsers requested users, and
// counts with only withheld users (AllWithheld). If all users were withheld (denied by a rule other than a limit), the
// store gets no filter call. For such counts, the method Begins therefore asks the given MessageMemory.
func (d *Delta) Begins(memory *capping.MessageMemory) bool {
	return IsActivity(d.Message) || d.Asked >= capping.BulkUsers || d.AllWithheld() && memory.KeepSends(d.Message, 0)
}

// SegmentAnswers holds the numbers of decisions about users of one segment.
type SegmentAnswers struct{ Asked, Allowed, Denied int64 }

// A Delta holds counts of decisions that a store adds to the counts of a message on a channel.
type Delta struct {
	Key
	Answers
}

// Store keeps the counts of sends and decisions of messages. The function capping.As finds the Store that a
// capping.Store contains. A Store is safe for concurrent use, and every method of a Store returns within the deadline
// of ctx.
//
// The store begins to count a message with the first call for which it remembers the message (capping.MessageMemory),
// even if the call denied every user. If sends are merged from another store with capping.Merge.Counted, the store also
// begins the counts of their messages. A merge of sends from another store adds no calls and no decisions to Answers. A
// merge changes Answers.Last, with the precision of an hour, but does not change Answers.First.
type Store interface {
	// AddAnswers adds the decision counts of instances to the store's counts. If the store does not count the message
	// of a delta (counts to add) yet, and the delta does not begin the counts (see Delta.Begins), AddAnswers drops the
	// delta. After an error, the store may have added none or only some of the deltas. A *NotAddedError lists the
	// deltas to add again.
	AddAnswers(ctx context.Context, deltas []Delta) error
	// ListMessages returns a page of the messages that the query selects, in the order of the query. If a message is
	// called between the requests of two pages, its position changes, and it may be on both pages or on neither.
	ListMessages(ctx context.Context, q Query) (Page, error)
	// MessageCounts returns the counts of the message, one for each channel, in the order of channel numbers. A message
	// without counts is not an error.
	MessageCounts(ctx context.Context, message capping.Message) ([]Counts, error)
	// SetTitle durably replaces the title of the message; an empty title removes the old title. A message may have a
	// title before its first call. The store keeps a title for the same time as counts, even if no call follows. If the
	// store has no space to remember the message, SetTitle returns ErrNotRemembered.
	SetTitle(ctx context.Context, message capping.Message, title string) error
	// Title returns the title of the message, even if the store does not count the message; "" means no title.
	Title(ctx context.Context, message capping.Message) (string, error)
}

// NotAddedError lists the decision counts (deltas) that the store may not have added. The store has added all other
// deltas.
type NotAddedError struct {
	Deltas []Delta
	Err    error
}

func (e *NotAddedError) Error() string { return e.Err.Error() }
func (e *NotAddedError) Unwrap() error { return e.Err }
