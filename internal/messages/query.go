package messages

import (
	"cmp"
	"slices"
	"strings"

	"capper/internal/capping"
)

// A Query selects the messages of a list and the order of the list. A Query with only the field Max selects the
// messages with the latest calls.
type Query struct {
	Since   capping.Instant // select messages whose last call was at this instant or later
	Until   capping.Instant // select messages whose last call was before this instant; 0: no limit
	Match   func(Key) bool  // nil: every message
	Part    string          // select messages whose id or title contains this text, in upper or lower case; "": all
	AtLeast int64           // select messages whose number Answers.Asked is at least this
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

// A Position is a place in a list of messages. A Position with a Value but without a message is the position before all
// messages with this Value.
type Position struct {
	Value int64 // Answers.Last in the order ByLast, Answers.Asked in the order ByAsked
	Key
}

// A Page is one page of a list of messages.
type Page struct {
	Found []Counts
	// Next is the position after which the next page begins; nil means that this page is the last. A page with a Next
	// may have fewer messages than Query.Max, because a store reads a limited number of messages for each page.
	Next *Position
}

// The method Compare compares the positions of two messages in a list with the order o. Messages with equal values are
// sorted by id and channel.
func (o Order) Compare(a, b Position) int {
	if o == ByAsked { // the reverse order of a Redis index
		return cmp.Or(cmp.Compare(b.Value, a.Value), -cmp.Compare(a.Channel, b.Channel),
			-cmp.Compare(a.Message.Text(), b.Message.Text()))
	}
	return cmp.Or(cmp.Compare(b.Value, a.Value), cmp.Compare(a.Message.Text(), b.Message.Text()),
		cmp.Compare(a.Channel, b.Channel))
}

// The method Behind reports whether the position p in a list is after Query.After. The message at p then belongs to
// this page or to a later page.
func (q *Query) Behind(p Position) bool {
	switch {
	case q.After == nil:
		return true
	case q.After.Message.ID == "": // the position before all messages with its value
		return p.Value <= q.After.Value
	}
	return q.Order.Compare(*q.After, p) < 0
}

// The method Within reports whether a message meets the limits Since, Until and AtLeast of the query. The argument
// "last" is the time of the message's last call, and "asked" is the number of users in all its calls.
func (q *Query) Within(last capping.Instant, asked int64) bool {
	return last >= q.Since && (q.Until == 0 || last < q.Until) && asked >= q.AtLeast
}

// The method Wants reports whether the query selects messages with the given key.
func (q *Query) Wants(key Key) bool { return q.Match == nil || q.Match(key) }

// A Candidate is a message that a store considers for a page of a list.
type Candidate struct {
	Key
	Last  capping.Instant
	Asked int64
}

// The method At returns the position of the candidate (message) in a list with the order o.
func (c *Candidate) At(o Order) Position {
	if o == ByAsked {
		return Position{c.Asked, c.Key}
	}
	return Position{int64(c.Last), c.Key}
}

// The method First sorts the candidates for a page of messages by the Order, and returns the first n candidates.
func (o Order) First(list []Candidate, n int) []Candidate {
	slices.SortFunc(list, func(a, b Candidate) int { return o.Compare(a.At(o), b.At(o)) })
	return list[:min(n, len(list))]
}

// The method Cut returns the candidates of one page, and the position after which the next page begins. The argument
// "list" holds the first candidates in the order of the query. If a next page exists, "list" must hold more than
// Query.Max candidates.
func (q *Query) Cut(list []Candidate) (page []Candidate, next *Position) {
	if len(list) <= q.Max {
		return list, nil
	}
	at := list[q.Max-1].At(q.Order)
	return list[:q.Max], &at
}

// The method Named reports whether a message's id or title (the argument "text") contains Query.Part in upper or lower
// case.
func (q *Query) Named(text string) bool {
	return strings.Contains(text, q.Part) || strings.Contains(strings.ToLower(text), strings.ToLower(q.Part))
}
