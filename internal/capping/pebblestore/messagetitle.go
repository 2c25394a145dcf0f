package pebblestore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
)

// The type "title" is the stored title of a message. Versions of capper without titles leave the database keys of
// titles unchanged.
type title struct {
	Namespace string          `json:"namespace,omitempty"`
	Message   string          `json:"message"`
	Title     string          `json:"title"`
	Set       capping.Instant `json:"set"`
}

func (t *title) message() capping.Message {
	return capping.Message{Namespace: t.Namespace, ID: t.Message}
}

func titleKey(t capping.Token) []byte { return append(slices.Clone(titlePrefix), t[:]...) }

// titleVersion is the first byte of each stored title.
const titleVersion = 1

func decodeTitle(value []byte) (*title, error) {
	return decodeVersioned[title](value, titleVersion, "title")
}

// SetTitle replaces the title of the message; see messages.Store. The new title becomes durable with the next sync.
func (c *messageCounts) SetTitle(message capping.Message, text string, now capping.Instant) error {
	remembered := text == "" || c.memory.KeepSends(message, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !remembered {
		counted, err := c.counted(message.Token())
		if err != nil {
			return err
		}
		if !counted {
			return messages.ErrNotRemembered
		}
	}
	batch := c.db.NewBatch()
	defer batch.Close()
	if text == "" {
		_ = batch.Delete(titleKey(message.Token()), nil) // fails only for indexed batches
	} else {
		value, err := json.Marshal(title{message.Namespace, message.ID, text, now})
		if err != nil {
			return err
		}
		_ = batch.Set(titleKey(message.Token()), append([]byte{titleVersion}, value...), nil)
	}
	c.db.Commit(batch)
	return nil
}

// The method "counted" reports whether the store has counts, on any channel, of the message with the token (short hash
// of the message).
func (c *messageCounts) counted(token capping.Token) (found bool, err error) {
	enough := errors.New("found")
	err = c.each(recordKey(id{token: token})[:len(recordPrefix)+len(token)], func([]byte, []byte) error {
		found = true
		return enough
	})
	if found {
		err = nil
	}
	return found, err
}

// Title returns the title that was set for the message; see messages.Store.
func (c *messageCounts) Title(message capping.Message) (string, error) {
	value, err := c.db.Lookup(titleKey(message.Token()))
	if err != nil || value == nil {
		return "", err
	}
	t, err := decodeTitle(value)
	if err != nil || t.message() != message {
		return "", err
	}
	return t.Title, nil
}

// The method "titled" returns the messages whose titles contain the text q.Part.
func (c *messageCounts) titled(ctx context.Context, q *messages.Query) (found map[capping.Message]bool, err error) {
	found = map[capping.Message]bool{}
	err = c.each(titlePrefix, func(_, value []byte) error {
		t, err := decodeTitle(value)
		if err == nil && q.Named(t.Title) {
			found[t.message()] = true
		}
		return errors.Join(err, ctx.Err())
	})
	return found, err
}

// SweepTitles removes titles of messages without counts that are older than the argument "keep". One call of
// SweepTitles checks at most "most" titles, beginning at the given key. SweepTitles returns the key for the start of
// the next call, or nil after the last title. SweepTitles skips unreadable titles.
func (c *messageCounts) SweepTitles(from []byte, most int, now capping.Instant, keep time.Duration) (next []byte,
	err error) {
	it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: database.After(titlePrefix)})
	if err != nil {
		return nil, err
	}
	var past [][]byte
	for ok := it.First(); ok; ok = it.Next() {
		if most--; most < 0 {
			next = slices.Clone(it.Key())
			break
		}
		t, err := decodeTitle(it.Value())
		if err == nil && t.Set <= now-capping.Instant(keep.Milliseconds()) {
			past = append(past, slices.Clone(it.Key()))
		}
	}
	if err := it.Close(); err != nil {
		return nil, err
	}
	for _, key := range past {
		if err := c.removeTitle(key, now-capping.Instant(keep.Milliseconds())); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// removeTitle removes the title of a message if the message has no counts, and if the title was not set after the time
// "horizon".
func (c *messageCounts) removeTitle(key []byte, horizon capping.Instant) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, err := c.db.Lookup(key)
	if err != nil || value == nil {
		return err
	}
	t, err := decodeTitle(value)
	if err != nil || t.Set > horizon {
		return err
	}
	counted, err := c.counted(capping.Token(key[len(titlePrefix):]))
	if err != nil || counted {
		return err
	}
	batch := c.db.NewBatch()
	defer batch.Close()
	_ = batch.Delete(key, nil) // fails only for indexed batches
	c.db.Commit(batch)
	return nil
}
