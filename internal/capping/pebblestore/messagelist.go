package pebblestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
)

// MessageCounts returns the counts of the message, one for each channel; see messages.Store.
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
	answers := r.Answers
	// A merge that created the record is not an answered call.
	if answers.Calls == 0 {
		answers.First = 0
	}
	return messages.Counts{Key: r.key(i), Sends: sends, Answers: answers}, nil
}

// listing is a walk over the list, latest call first.
type listing struct {
	c      *messageCounts
	since  capping.Instant
	most   int
	match  func(messages.Key) bool
	rows   []row
	minute int64 // the minute of the last row
}

type row struct {
	id
	*record
}

// ListMessages returns the messages with the latest calls; see messages.Store.
func (c *messageCounts) ListMessages(
	ctx context.Context,
	since capping.Instant,
	most int,
	match func(messages.Key) bool,
) (
	found []messages.Counts, more bool, err error) {
	l := listing{c: c, since: since, most: most, match: match}
	if err := l.walk(ctx); err != nil {
		return nil, false, err
	}
	slices.SortStableFunc(l.rows, func(a, b row) int { return cmp.Compare(b.Last, a.Last) })
	for _, r := range l.rows[:min(most, len(l.rows))] {
		one, err := c.campaign(r.id, r.record)
		if err != nil {
			return nil, false, err
		}
		found = append(found, one)
	}
	return found, len(l.rows) > most, nil
}

func (l *listing) walk(ctx context.Context) error {
	it, err := l.c.db.NewIter(&pebble.IterOptions{LowerBound: listKey(l.since, id{}),
		UpperBound: database.After(listPrefix)})
	if err != nil {
		return err
	}
	for ok := it.Last(); ok && err == nil; ok = it.Prev() {
		i, at, valid := listed(it.Key())
		if !valid {
			continue
		}
		if len(l.rows) > l.most && at < l.minute {
			break // all remaining messages were called earlier
		}
		l.minute = at
		err = errors.Join(l.add(i), ctx.Err())
	}
	return errors.Join(err, it.Close())
}

// add adds the message to the result when it matches. add reads the record again, because the message may
// have been called or removed since the walk began.
func (l *listing) add(i id) error {
	r, err := l.c.load(i)
	if err != nil || r == nil {
		return err
	}
	if r.Last >= l.since && (l.match == nil || l.match(r.key(i))) {
		l.rows = append(l.rows, row{i, r})
	}
	return nil
}
