package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/segments/ingest/format"
)

// sender sends rows to the service, with several batches in parallel.
type sender struct {
	api      *client.Client
	patience time.Duration // for which a batch is sent again
	parallel int
	batch    int
	reach    func(*api.ImportSummary)

	mu  sync.Mutex
	sum api.ImportSummary
	err error
}

// all sends all rows. One worker sends all rows of a user, in order, so that the service records the earliest of
// equal sends.
func (s *sender) all(ctx context.Context, rows *sorter) (api.ImportSummary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queues := make([]queue, s.parallel)
	var workers sync.WaitGroup
	for i := range queues {
		// The buffer lets the reader continue while one worker is busy and the others are idle.
		queues[i].batches = make(chan []format.SendRow, 1)
		workers.Go(func() {
			for batch := range queues[i].batches {
				if err := s.send(ctx, batch); err != nil {
					s.fail(err)
					cancel()
				}
			}
		})
	}
	err := rows.each(func(r format.SendRow) error {
		l := &queues[queueOf(r.User, s.parallel)]
		if len(l.next) > 0 && l.next[0].Namespace != r.Namespace {
			if err := l.give(ctx); err != nil {
				return err
			}
		}
		if l.next = append(l.next, r); len(l.next) < s.batch {
			return nil
		}
		return l.give(ctx)
	})
	for i := range queues {
		if err == nil && len(queues[i].next) > 0 {
			err = queues[i].give(ctx)
		}
		close(queues[i].batches)
	}
	workers.Wait()
	if s.err != nil {
		err = s.err
	}
	return s.sum, err
}

// queue holds the batches of one worker.
type queue struct {
	next    []format.SendRow
	batches chan []format.SendRow
}

func (l *queue) give(ctx context.Context) error {
	select {
	case l.batches <- l.next:
		l.next = nil
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// queueOf distributes users over n workers. queueOf also spreads regular selections evenly, such as every fourth user.
func queueOf(user uint32, n int) int {
	return int(uint64(user*2654435769) * uint64(n) >> 32)
}

func (s *sender) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// send sends one batch of rows in one namespace. send retries unavailable users and an unavailable service until the
// patience is over.
func (s *sender) send(ctx context.Context, batch []format.SendRow) error {
	pause, until := 100*time.Millisecond, time.Now().Add(s.patience)
	for {
		result, err := s.api.ImportInto(ctx, batch[0].Namespace, requestOf(batch))
		if client.HasCode(err, client.CodeTooLarge) && len(batch) > 1 {
			half := len(batch) / 2
			if err := s.send(ctx, batch[:half]); err != nil {
				return err
			}
			return s.send(ctx, batch[half:])
		}
		if row, ok := refusedOf(batch, err); ok {
			return &refusedSend{row, err}
		}
		if err != nil && (ctx.Err() != nil || !client.Passing(err) || time.Now().After(until)) {
			return err
		}
		if err == nil {
			left := leftOf(batch, result)
			if len(left) == 0 || time.Now().After(until) {
				s.count(&result.Summary)
				return nil
			}
			done := result.Summary
			done.Requested, done.Unavailable = done.Requested-done.Unavailable, 0
			s.count(&done)
			batch = left
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Second)
	}
}

func (s *sender) count(sum *api.ImportSummary) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum.Add(sum)
	s.reach(&s.sum)
}

// leftOf returns the rows of unavailable users. Their expired sends are sent again but counted only once, because
// only sends that have not expired count as unavailable.
func leftOf(batch []format.SendRow, result *api.ImportAnswer) (left []format.SendRow) {
	if len(result.Unavailable) == 0 {
		return nil
	}
	for _, r := range batch {
		if _, found := slices.BinarySearch(result.Unavailable, r.User); found {
			left = append(left, r)
		}
	}
	return left
}

// refusedSend reports a send that the service rejected although it was read without fault, for example because the
// service's clock is behind.
type refusedSend struct {
	row format.SendRow
	err error
}

// Error returns a text with the fields of the send, because the position in the call means nothing to the user.
func (r *refusedSend) Error() string {
	text := fmt.Sprintf("the service rejected the send of user %d at %s", r.row.User,
		time.UnixMilli(r.row.At).UTC().Format("2006-01-02T15:04:05.000Z"))
	if r.row.MessageID != "" {
		text += fmt.Sprintf(" with message id %q", r.row.MessageID)
	}
	if r.row.Namespace != "" {
		text += fmt.Sprintf(" of namespace %q", r.row.Namespace)
	}
	return text + ": " + r.err.Error()
}

// Unwrap returns the error of the service.
func (r *refusedSend) Unwrap() error { return r.err }

// refusedOf returns the row that an error of the service concerns. ok is false if it concerns no row.
func refusedOf(batch []format.SendRow, err error) (row format.SendRow, ok bool) {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return row, false
	}
	place, found := strings.CutPrefix(refused.Field, "sends[")
	place, _, closed := strings.Cut(place, "]")
	i, err := strconv.Atoi(place)
	if !found || !closed || err != nil || i < 0 || i >= len(batch) {
		return row, false
	}
	return batch[i], true
}

// requestOf returns the rows as the request of a call. A field that all rows share appears once.
func requestOf(batch []format.SendRow) *api.ImportRequest {
	r := &api.ImportRequest{Channel: batch[0].Channel, MessageID: batch[0].MessageID,
		Sends: make([]api.ImportedSend, len(batch))}
	for _, row := range batch {
		if row.Channel != r.Channel {
			r.Channel = ""
		}
		if row.MessageID != r.MessageID {
			r.MessageID = ""
		}
	}
	for i, row := range batch {
		r.Sends[i] = api.ImportedSend{UserID: row.User, At: time.UnixMilli(row.At).UTC()}
		if r.Channel == "" {
			r.Sends[i].Channel = row.Channel
		}
		if r.MessageID == "" {
			r.Sends[i].MessageID = row.MessageID
		}
	}
	return r
}

// lost returns the error for an import after which n sends were missing.
func lost(n int) error {
	return fmt.Errorf("%d sends were missing after the import and have been added now", n)
}
