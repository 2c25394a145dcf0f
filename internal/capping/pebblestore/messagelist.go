package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
)

// MessageCounts returns the counts of the message on each channel; see messages.Store.
func (c *messageCounts) MessageCounts(message capping.Message) (found []messages.Counts, err error) {
	token := message.Token()
	prefix := recordKey(id{token: token})[:len(recordPrefix)+len(token)]
	err = c.each(prefix, func(key, value []byte) error {
		i := idAt(key[len(recordPrefix):])
		r, err := decodeRecord(value)
		if err != nil || r.key(i).Message != message {
			return err
		}
		one, err := c.campaign(i, r)
		found = append(found, one)
		return err
	})
	return found, err
}

func (c *messageCounts) campaign(i id, r *record) (messages.Counts, error) {
	sends, err := c.sum(cell{i, r.Life})
	if err != nil {
		return messages.Counts{}, fmt.Errorf("message %q: %w", r.Message, err)
	}
	title, err := c.Title(r.key(i).Message)
	if err != nil {
		return messages.Counts{}, err
	}
	answers := r.Answers
	// The record of a merge has Calls 0, because no call has asked for decisions.
	if answers.Calls == 0 {
		answers.First = 0
	}
	return messages.Counts{Key: r.key(i), Title: title, Sends: sends, Answers: answers}, nil
}

// mostListed is the maximum number of messages that the store reads for one page of messages by last call. After the
// store has read mostListed messages, the page ends, and the next page begins after the last read message.
const mostListed = 500_000

// A listing is a walk over the list of messages, from the latest call backwards.
type listing struct {
	*messages.Query
	c      *messageCounts
	titled map[capping.Message]bool // messages whose title contains Query.Part
	found  []messages.Candidate
	looked int
	minute int64 // the minute of the last message that was read
}

// ListMessages returns one page of the messages that the query selects; see messages.Store.
func (c *messageCounts) ListMessages(ctx context.Context, q messages.Query) (page messages.Page, err error) {
	l := listing{Query: &q, c: c}
	if q.Part != "" {
		if l.titled, err = c.titled(ctx, &q); err != nil {
			return messages.Page{}, err
		}
	}
	reached, err := l.walk(ctx)
	if err != nil {
		return messages.Page{}, err
	}
	found, next := q.Cut(q.Order.First(l.found, q.Max+1))
	if next == nil {
		next = reached
	}
	page.Next = next
	for _, one := range found {
		i := idOf(one.Key)
		r, err := c.load(i)
		if err != nil {
			return messages.Page{}, err
		}
		if r == nil { // removed since the walk
			continue
		}
		counts, err := c.campaign(i, r)
		if err != nil {
			return messages.Page{}, err
		}
		page.Found = append(page.Found, counts)
	}
	return page, nil
}

// The method "walk" finds the messages of the page. If the walk stops because it has read mostListed messages, the
// result "reached" is the position of the stop. If the walk ends before it has read mostListed messages, the result
// "reached" is nil.
func (l *listing) walk(ctx context.Context) (reached *messages.Position, err error) {
	bounds := &pebble.IterOptions{LowerBound: listKey(l.Since, id{}), UpperBound: l.upper()}
	it, err := l.c.db.NewIter(bounds)
	if err != nil {
		return nil, err
	}
	for ok := it.Last(); ok && err == nil; ok = it.Prev() {
		i, at, valid := listed(it.Key())
		if !valid {
			continue
		}
		if l.Order == messages.ByLast && at < l.minute {
			if len(l.found) > l.Max {
				break // all remaining messages were called earlier
			}
			if l.looked >= mostListed {
				reached = &messages.Position{Value: l.minute*60_000 - 1}
				break
			}
		}
		l.minute = at
		l.looked++
		err = errors.Join(l.add(i, it.Value()), ctx.Err())
	}
	return reached, errors.Join(err, it.Close())
}

// The method "upper" returns the database key at which the walk over the list of messages starts: a key after all
// messages that may match the query.
func (l *listing) upper() []byte {
	until := capping.Never
	if l.Until > 0 {
		until = l.Until
	}
	if l.Order == messages.ByLast && l.After != nil {
		until = min(until, capping.Instant(l.After.Value))
	}
	if until == capping.Never {
		return database.After(listPrefix)
	}
	return listKey(until+60_000, id{})
}

// The method "add" adds one message of the list to the found messages, if the message matches the query.
func (l *listing) add(i id, value []byte) error {
	one, err := l.c.candidate(i, value)
	if err != nil || one == nil {
		return err
	}
	if !l.Within(one.Last, one.Asked) || !l.Behind(one.At(l.Order)) || !l.Wants(one.Key) ||
		!l.Named(one.Message.ID) && !l.titled[one.Message] {
		return nil
	}
	if len(l.found) >= 4*l.Max+1000 && l.Order == messages.ByAsked {
		l.found = l.Order.First(l.found, l.Max+1)
	}
	l.found = append(l.found, *one)
	return nil
}

// listVersion is the first byte of each value in the stored list of messages. In earlier versions of capper, the values
// in the list were empty.
const listVersion = 1

// listValue returns the value of a message in the stored list of messages: version, last call, number of requested
// users, and the message's text. A walk over the list needs no other data of messages, because the value contains
// everything that the walk needs.
func listValue(r *record) []byte {
	value := binary.AppendUvarint([]byte{listVersion}, uint64(max(r.Last, 0)))
	value = binary.AppendUvarint(value, uint64(max(r.Asked, 0)))
	return append(value, capping.Message{Namespace: r.Namespace, ID: r.Message}.Text()...)
}

// The method "candidate" decodes one value of the stored list of messages. If the value has another version, the method
// "candidate" reads the record of the message instead, and returns nil if the message has no record.
func (c *messageCounts) candidate(i id, value []byte) (*messages.Candidate, error) {
	if len(value) > 0 && value[0] == listVersion {
		last, n := binary.Uvarint(value[1:])
		asked, m := binary.Uvarint(value[1+max(n, 0):])
		if n > 0 && m > 0 {
			return &messages.Candidate{
				Key:  messages.Key{Message: capping.MessageOf(string(value[1+n+m:])), Channel: i.channel},
				Last: capping.Instant(last), Asked: int64(asked),
			}, nil
		}
	}
	r, err := c.load(i)
	if err != nil || r == nil {
		return nil, err
	}
	return &messages.Candidate{Key: r.key(i), Last: r.Last, Asked: r.Asked}, nil
}
