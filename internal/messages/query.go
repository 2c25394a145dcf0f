package messages

import (
	"cmp"
	"slices"
	"strings"

	"capper/internal/capping"
)

// Query selects the messages of a list. The zero value with a Max selects the messages with the latest calls.
type Query struct {
	Since   capping.Instant // the last call was then or later
	Until   capping.Instant // the last call was earlier than then; 0: open
	Match   func(Key) bool  // nil: every message
	Part    string          // the id or the title contains this, in letters of any case; "": every message
	AtLeast int64           // Answers.Asked is this number or more
	Order   Order
	After   *Position // only messages behind this one; nil: from the first one on
	Max     int       // the most messages of a page
}

// Order is the order of a list.
type Order uint8

// The orders of lists are part of the cursors that callers hold.
const (
	ByLast  Order = iota // the latest call first
	ByAsked              // the most users in all calls first
)

// Position is the place of a message in a list. A Position without a message is the place before all messages with its
// Value.
type Position struct {
	Value int64 // Answers.Last or Answers.Asked, depending on the order
	Key
}

// Page is a part of a list.
type Page struct {
	Found []Counts
	// Next is the position after which the next page begins; nil: this is the last page. A page may have fewer
	// messages than Query.Max and a Next, because a store looks at a limited number of messages for each page.
	Next *Position
}

// Compare compares the places of two messages. Messages with equal values are sorted by id and channel.
func (o Order) Compare(a, b Position) int {
	if o == ByAsked { // in the order of a Redis index, backwards
		return cmp.Or(cmp.Compare(b.Value, a.Value), -cmp.Compare(a.Channel, b.Channel),
			-cmp.Compare(a.Message.Text(), b.Message.Text()))
	}
	return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Message.Text(), b.Message.Text()),
		cmp.Compare(a.Channel, b.Channel))
}

// Behind reports whether the place is after Query.After.
func (q *Query) Behind(p Position) bool {
	switch {
	case q.After == nil:
		return true
	case q.After.Message.ID == "": // before all messages with its value
		return p.Value <= q.After.Value
	}
	return q.Order.Compare(*q.After, p) < 0
}

// Within reports whether the query wants a message with this last call and this number of users.
func (q *Query) Within(last capping.Instant, asked int64) bool {
	return last >= q.Since && (q.Until == 0 || last < q.Until) && asked >= q.AtLeast
}

// Wants reports whether the query wants the message by its key.
func (q *Query) Wants(key Key) bool { return q.Match == nil || q.Match(key) }

// Candidate is a message that may be on a page.
type Candidate struct {
	Key
	Last  capping.Instant
	Asked int64
}

// At returns the place of the candidate in the order.
func (c *Candidate) At(o Order) Position {
	if o == ByAsked {
		return Position{c.Asked, c.Key}
	}
	return Position{int64(c.Last), c.Key}
}

// First sorts the candidates and returns the first n of them.
func (o Order) First(list []Candidate, n int) []Candidate {
	slices.SortFunc(list, func(a, b Candidate) int { return o.Compare(a.At(o), b.At(o)) })
	return list[:min(n, len(list))]
}

// Cut returns the candidates of the page and the position after them. list has the first candidates of the order, one
// more than Query.Max if there are others.
func (q *Query) Cut(list []Candidate) (page []Candidate, next *Position) {
	if len(list) <= q.Max {
		return list, nil
	}
	at := list[q.Max-1].At(q.Order)
	return list[:q.Max], &at
}

// Named reports whether the query wants a message with this id or title by its Part.
func (q *Query) Named(text string) bool {
	return strings.Contains(text, q.Part) || strings.Contains(strings.ToLower(text), strings.ToLower(q.Part))
}
