package pebblestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/messages"
)

// The result "keep" of shouldRemember is true if the store remembers the batch's message and counts the message's
// sends. The result "due" of shouldRemember is true if the store must write the message's text now.
func (s *Store) shouldRemember(b *capping.Batch) (keep, due bool) {
	keep = len(b.Message.Text()) <= capping.MaxMessageText && s.memory.Keep(b)
	return keep, keep && s.memory.Due(b)
}

// The method "remember" writes the texts of the messages to the database. The texts expire at the same time as sends
// that are recorded now, and become durable with the next sync.
func (s *Store) remember(retention time.Duration, messages ...capping.Message) error {
	now, err := s.db.Now()
	if err != nil {
		return err
	}
	s.messages.Lock()
	defer s.messages.Unlock()
	batch := s.db.NewBatch()
	defer batch.Close()
	for _, message := range messages {
		value := encodeMessage(now+capping.Instant(retention.Milliseconds()), message)
		if err := batch.Set(messageKey(keyKind(message), message.Token()), value, nil); err != nil {
			return err
		}
	}
	s.db.Commit(batch)
	return nil
}

// Messages returns the remembered message of each token (short hash of a message); see capping.Store.
func (s *Store) Messages(ctx context.Context, tokens []capping.Token) (map[capping.Token]capping.Message, error) {
	tokens = slices.Clone(tokens)
	found := make(map[capping.Token]capping.Message, len(tokens))
	err := s.db.Read(ctx, func() error {
		for _, token := range tokens {
			message, err := s.message(token)
			if err != nil {
				return fmt.Errorf("message %x: %w", token, err)
			}
			if message.ID != "" {
				found[token] = message
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// The method "message" returns the remembered message of the token (short hash of a message). For an unknown token
// (short hash of a message), the method "message" returns a message without an ID.
func (s *Store) message(token capping.Token) (capping.Message, error) {
	for _, kind := range []byte{database.KeyMessage, database.KeyNamed} {
		value, err := s.db.Lookup(messageKey(kind, token))
		if err != nil {
			return capping.Message{}, err
		}
		if value == nil {
			continue
		}
		expires, message, err := decodeMessage(value)
		if err != nil {
			return capping.Message{}, err
		}
		if expires > capping.InstantOf(s.clock()) {
			return message, nil
		}
	}
	return capping.Message{}, nil
}

// messageKey returns the database key for the text of a message. The first byte of a message's key is the argument
// "kind".
func messageKey(kind byte, token capping.Token) []byte { return append([]byte{kind}, token[:]...) }

// keyKind returns the first byte of the database key for the text of the message. Keys of messages with a namespace
// begin with another byte, so that versions of capper without namespaces do not read them.
func keyKind(m capping.Message) byte {
	if m.Namespace == "" {
		return database.KeyMessage
	}
	return database.KeyNamed
}

// encodeMessage returns the stored value for a message's text: the time of expiry (8 bytes, big endian) and the text.
// The first byte of a message's stored value is always 0, so that a later format can begin with another byte.
func encodeMessage(expires capping.Instant, m capping.Message) []byte {
	text := m.Text()
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(text)), uint64(expires)), text...)
}

func decodeMessage(value []byte) (expires capping.Instant, m capping.Message, err error) {
	if len(value) <= 8 || len(value) > 8+capping.MaxMessageText {
		return 0, m, fmt.Errorf("stored message record must have 9 to %d bytes, got %d",
			8+capping.MaxMessageText, len(value))
	}
	at := binary.BigEndian.Uint64(value)
	if at > uint64(2*capping.Never) {
		return 0, m, fmt.Errorf("stored message record must expire at %d at the latest, got %d", 2*capping.Never, at)
	}
	return capping.Instant(at), capping.MessageOf(string(value[8:])), nil
}

// AddAnswers adds numbers of decisions to the stored counts of messages; see messages.Store.
func (s *Store) AddAnswers(ctx context.Context, deltas []messages.Delta) error {
	deltas = slices.Clone(deltas) // nobody changes the maps of the deltas
	err := s.db.Write(ctx, func() error {
		if err := s.counts.AddAnswers(ctx, deltas); err != nil {
			return err
		}
		return s.db.Sync(ctx)
	})
	if err != nil {
		return fmt.Errorf("add answers: %w", err)
	}
	return nil
}

// ListMessages returns a page of a list of messages; see messages.Store.
func (s *Store) ListMessages(ctx context.Context, q messages.Query) (messages.Page, error) {
	var page messages.Page
	err := s.db.Read(ctx, func() (err error) {
		page, err = s.counts.ListMessages(ctx, q)
		return err
	})
	if err != nil {
		return messages.Page{}, fmt.Errorf("list campaigns: %w", err)
	}
	return page, nil
}

// MessageCounts returns the counts of the message on each channel; see messages.Store.
func (s *Store) MessageCounts(ctx context.Context, message capping.Message) ([]messages.Counts, error) {
	var found []messages.Counts
	err := s.db.Read(ctx, func() (err error) {
		found, err = s.counts.MessageCounts(message)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the counts of message %q: %w", message.ID, err)
	}
	return found, nil
}

// SetTitle gives the message another title; see messages.Store.
func (s *Store) SetTitle(ctx context.Context, message capping.Message, text string) error {
	err := s.db.Write(ctx, func() error {
		now, err := s.db.Now()
		if err != nil {
			return err
		}
		if err := s.counts.SetTitle(message, text, now); err != nil {
			return err
		}
		return s.db.Sync(ctx)
	})
	if err != nil && !errors.Is(err, messages.ErrNotRemembered) {
		return fmt.Errorf("set the title of message %q: %w", message.ID, err)
	}
	return err
}

// Title returns the title that was set for the message; see messages.Store.
func (s *Store) Title(ctx context.Context, message capping.Message) (text string, err error) {
	err = s.db.Read(ctx, func() (err error) {
		text, err = s.counts.Title(message)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the title of message %q: %w", message.ID, err)
	}
	return text, nil
}
