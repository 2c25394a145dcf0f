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

// sender has the service record rows, some batches at one time.
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

// all sends all rows. The sends of a user are sent by one worker, in their order: of those that are the same
// send the earliest is recorded, however many batches there are at one time.
func (s *sender) all(ctx context.Context, rows *sorter) (api.ImportSummary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lanes := make([]lane, s.parallel)
	var workers sync.WaitGroup
	for i := range lanes {
		// so that who reads need not wait for one lane while others are idle
		lanes[i].batches = make(chan []format.SendRow, 1)
		workers.Go(func() {
			for batch := range lanes[i].batches {
				if err := s.send(ctx, batch); err != nil {
					s.fail(err)
					cancel()
				}
			}
		})
	}
	err := rows.each(func(r format.SendRow) error {
		l := &lanes[laneOf(r.User, s.parallel)]
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
	for i := range lanes {
		if err == nil && len(lanes[i].next) > 0 {
			err = lanes[i].give(ctx)
		}
		close(lanes[i].batches)
	}
	workers.Wait()
	if s.err != nil {
		err = s.err
	}
	return s.sum, err
}

// lane is what one worker sends.
type lane struct {
	next    []format.SendRow
	batches chan []format.SendRow
}

func (l *lane) give(ctx context.Context) error {
	select {
	case l.batches <- l.next:
		l.next = nil
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// laneOf spreads users over n lanes, those of a regular choice too, such as every fourth.
func laneOf(user uint32, n int) int {
	return int(uint64(user*2654435769) * uint64(n) >> 32)
}

func (s *sender) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// send has one batch recorded, whose rows are of one namespace. Users that the store cannot answer for, and a service
// that is away, are asked for again until patience is over.
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

// leftOf is the rows whose users are unavailable. What of those users had expired comes again, and is
// counted once: unavailable are only sends that had not.
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

// refusedSend is a send that reading took for one and the service does not, as an instance whose clock is behind.
type refusedSend struct {
	row format.SendRow
	err error
}

// Error tells the send as files have it: its place in a call says nothing to who reads this.
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

// Unwrap is the service's error.
func (r *refusedSend) Unwrap() error { return r.err }

// refusedOf is the row that an error of the service is about; false: it is about none.
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

// requestOf is the rows as a call: what all of them share stands once.
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

// lost is the fault of an import whose sends were not all there afterwards.
func lost(n int) error {
	return fmt.Errorf("%d sends were missing after the import and have been added now", n)
}
