package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"capper/client"
	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/segments/ingest/format"
)

// A sender imports rows into the service, several batches at a time.
type sender struct {
	api      *client.Client
	patience time.Duration // time for which a batch is retried
	parallel int
	batch    int
	reach    func(*api.ImportSummary)

	mu  sync.Mutex
	sum api.ImportSummary
	err error
}

// The method "all" imports all rows into the service. One worker sends all rows of a user, in order of time, so that
// the service records the earliest of several equal sends.
func (s *sender) all(ctx context.Context, rows *sorter) (api.ImportSummary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queues := make([]queue, s.parallel)
	var workers sync.WaitGroup
	for i := range queues {
		// With the buffer, the reader can continue while one worker is busy and the others are idle.
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

// A queue holds the batches of rows that one worker sends to the service.
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

// queueOf returns the number of the worker, from 0 to n-1, that sends the rows of a user. queueOf distributes users
// evenly, even a regular selection such as every fourth user.
func queueOf(user capping.UserID, n int) int {
	high, _ := bits.Mul64(uint64(user)*0x9e3779b97f4a7c15, uint64(n))
	return int(high)
}

func (s *sender) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// The method "send" imports a batch of rows of one namespace. For at most the time "patience", the method "send"
// retries failed calls, and rows of users whose result is unknown.
func (s *sender) send(ctx context.Context, batch []format.SendRow) error {
	pause, until := 100*time.Millisecond, time.Now().Add(s.patience)
	for {
		left, sum, err := s.call(ctx, batch)
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
			if len(left) == 0 || time.Now().After(until) {
				s.count(&sum)
				return nil
			}
			sum.Requested, sum.Unavailable = sum.Requested-sum.Unavailable, 0
			s.count(&sum)
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

// The method "call" sends a batch of rows one time, and returns the rows of unavailable users (whose result is
// unknown). The returned rows include the user's expired sends, so a retry repeats expired sends. The number of
// unavailable sends in the summary does not include expired sends.
func (s *sender) call(ctx context.Context, batch []format.SendRow) (left []format.SendRow, sum api.ImportSummary,
	err error) {
	if batch[0].ID == "" {
		result, err := s.api.ImportInto(ctx, batch[0].Namespace, requestOf(batch))
		if err != nil {
			return nil, sum, err
		}
		return leftOf(batch, func(r *format.SendRow) bool {
			_, found := slices.BinarySearch(result.Unavailable, capping.Dense(r.User))
			return found
		}), result.Summary, nil
	}
	result, err := s.api.ImportIDsInto(ctx, batch[0].Namespace, requestOfIDs(batch))
	if err != nil {
		return nil, sum, err
	}
	open := make(map[string]bool, len(result.Unavailable))
	for _, id := range result.Unavailable {
		open[id] = true
	}
	return leftOf(batch, func(r *format.SendRow) bool { return open[r.ID] }), result.Summary, nil
}

// leftOf returns the rows of a batch whose users are unavailable (with an unknown result).
func leftOf(batch []format.SendRow, unavailable func(*format.SendRow) bool) (left []format.SendRow) {
	for i := range batch {
		if unavailable(&batch[i]) {
			left = append(left, batch[i])
		}
	}
	return left
}

// refusedSend reports a send that the service rejected, although the command found no error in the row. A possible
// cause is a slow clock of the service.
type refusedSend struct {
	row format.SendRow
	err error
}

// The method Error returns a text with the fields of the rejected send, because operators cannot find a row by its
// position in the API call.
func (r *refusedSend) Error() string {
	text := fmt.Sprintf("the service rejected the send of user %s at %s", idOf(&r.row),
		time.UnixMilli(r.row.At).UTC().Format("2006-01-02T15:04:05.000Z"))
	if r.row.MessageID != "" {
		text += fmt.Sprintf(" with message id %q", r.row.MessageID)
	}
	if r.row.Namespace != "" {
		text += fmt.Sprintf(" of namespace %q", r.row.Namespace)
	}
	return text + ": " + r.err.Error()
}

// Unwrap returns the error with which the service rejected the send.
func (r *refusedSend) Unwrap() error { return r.err }

// refusedOf returns the row of a batch to which an error of the service refers. If the error refers to no row, the
// result "ok" is false.
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

// idOf returns the user id in a row.
func idOf(row *format.SendRow) string {
	return cmp.Or(row.ID, strconv.FormatUint(uint64(row.User), 10))
}

// requestOf returns an import request with the rows of a batch, for dense ids (32-bit numbers). If all rows share the
// channel or the message id, the request contains this value only once.
func requestOf(batch []format.SendRow) *api.ImportRequest {
	channel, messageID := sharedBy(batch)
	r := &api.ImportRequest{Channel: channel, MessageID: messageID, Sends: make([]api.ImportedSend, len(batch))}
	for i, row := range batch {
		r.Sends[i] = api.ImportedSend{UserID: capping.Dense(row.User), At: time.UnixMilli(row.At).UTC(),
			Channel: unless(channel, row.Channel), MessageID: unless(messageID, row.MessageID)}
	}
	return r
}

// requestOfIDs works like requestOf, for ids that are not dense 32-bit numbers.
func requestOfIDs(batch []format.SendRow) *api.ImportRequestStrings {
	channel, messageID := sharedBy(batch)
	r := &api.ImportRequestStrings{Channel: channel, MessageID: messageID,
		Sends: make([]api.ImportedSendOfID, len(batch))}
	for i, row := range batch {
		r.Sends[i] = api.ImportedSendOfID{UserID: row.ID, At: time.UnixMilli(row.At).UTC(),
			Channel: unless(channel, row.Channel), MessageID: unless(messageID, row.MessageID)}
		if row.Image != "" {
			r.Sends[i].UserID, r.Sends[i].Image = "", row.Image
		}
	}
	return r
}

// sharedBy returns the channel and the message id that all rows of a batch have in common. The channel or the message
// id is "" if it differs between the rows.
func sharedBy(batch []format.SendRow) (channel, messageID string) {
	channel, messageID = batch[0].Channel, batch[0].MessageID
	for i := range batch {
		if batch[i].Channel != channel {
			channel = ""
		}
		if batch[i].MessageID != messageID {
			messageID = ""
		}
	}
	return channel, messageID
}

// The function "unless" returns the row's own value of a field, or "" if the import request contains one shared value
// for all rows.
func unless(shared, own string) string {
	if shared != "" {
		return ""
	}
	return own
}

// The function "lost" returns the error for an import after which n sends were missing.
func lost(n int) error {
	return fmt.Errorf("%d sends were missing after the import, and capper added them again", n)
}
