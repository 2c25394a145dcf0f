package messages

import (
	"cmp"
	"slices"
	"strings"

	"capper/internal/capping"
)

// Query selects the messages of a list, and their order. A Query in which only Max is filled selects the messages with
// the latest calls.
type Query struct {
	Since   capping.Instant // the last call of the message was at this instant or later
	Until   capping.Instant // the last call of the message was before this instant; 0: no bound
	Match   func(Key) bool  // nil: every message
	Part    string          // the id or the title contains this text, in upper or lower case; "": every message
	AtLeast int64           // Answers.Asked of the message is this number or more
	Order   Order
	After   *Position // only messages after this position; nil: from the first message on
	Max     int       // the largest number of messages on a page
}

// Order is the order in which a list shows messages.
type Order uint8

// The numbers of the orders must not change, because they are part of the cursors (page positions) that callers keep.
const (
	ByLast  Order = iota // the message with the latest call first
	ByAsked              // the message with the most asked users first
)

// Position is a position in a list of messages. A Position without a message comes before all messages whose value is
// the field Value of the Position.
type Position struct {
	Value int64 // Answers.Last in the order ByLast, Answers.Asked in the order ByAsked
	Key
}

// Page is one page of a list of messages.
type Page struct {
	Found []Counts
	// Next is the position after which the next page begins; nil means that this page is the last. A page with a Next
	// may have fewer messages than Query.Max, because a store reads a limited number of messages for each page.
	Next *Position
}

// Compare compares the positions of two messages in a list with the order o. If two messages have equal values, a
// list sorts them by id and channel.
func (o Order) Compare(a, b Position) int {
	if o == ByAsked { // the reverse order of a Redis index
		return cmp.Or(cmp.Compare(b.Value, a.Value), -cmp.Compare(a.Channel, b.Channel),
			-cmp.Compare(a.Message.Text(), b.Message.Text()))
	}
	return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Message.Text(), b.Message.Text()),
		cmp.Compare(a.Channel, b.Channel))
}

// Behind reports whether the position p in a list is after Query.After, so that its message belongs to this page or a
// later one.
func (q *Query) Behind(p Position) bool {
	switch {
	case q.After == nil:
		return true
	case q.After.Message.ID == "": // the position before all messages with its value
		return p.Value <= q.After.Value
	}
	return q.Order.Compare(*q.After, p) < 0
}

// Within reports whether a message with the given last call and the given number of requested users is within the
// bounds of the query.
func (q *Query) Within(last capping.Instant, asked int64) bool {
	return last >= q.Since && (q.Until == 0 || last < q.Until) && asked >= q.AtLeast
}

// Wants reports whether the query selects messages with the given key.
func (q *Query) Wants(key Key) bool { return q.Match == nil || q.Match(key) }

// Candidate is a message that a store considers for a page of a list.
type Candidate struct {
	Key
	Last  capping.Instant
	Asked int64
}

// At returns the position of the candidate (message) in a list with the order o.
func (c *Candidate) At(o Order) Position {
	if o == ByAsked {
		return Position{c.Asked, c.Key}
	}
	return Position{int64(c.Last), c.Key}
}

// First sorts the candidates for a page of messages by the Order, and returns the first n candidates.
func (o Order) First(list []Candidate, n int) []Candidate {
	slices.SortFunc(list, func(a, b Candidate) int { return o.Compare(a.At(o), b.At(o)) })
	return list[:min(n, len(list))]
}

// Cut returns those candidates that belong to one page, and the position after which the next page begins. The argument
// "list" of Cut holds the first candidates in the order of the query. If there is a next page of messages, the argument
// "list" holds more than Query.Max candidates.
func (q *Query) Cut(list []Candidate) (page []Candidate, next *Position) {
	if len(list) <= q.Max {
		return list, nil
	}
	at := list[q.Max-1].At(q.Order)
	return list[:q.Max], &at
}

// Named reports whether a message's id or title (the argument "text") contains Query.Part in upper or lower case.
func (q *Query) Named(text string) bool {
	return strings.Contains(text, q.Part) || strings.Contains(strings.ToLower(text), strings.ToLower(q.Part))
}
