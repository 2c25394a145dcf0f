package capping

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Merger is what stores can do that take sends which were recorded elsewhere, by another
// program or in another store, with their own times (see As). It is safe for concurrent use.
type Merger interface {
	// Merge unites the log of each user with the one that is given, as Log.Union does,
	// each user atomically and beside calls that decide, and sets merged[i] for Users[i].
	// What was merged is as durable as what Filter recorded. A user whose merged[i] is not
	// Done may or may not have been merged; merging again settles it. The error tells
	// operators why; it is nil exactly when every user is done. What Merge.Check refuses is
	// an error and leaves the store as it was.
	Merge(ctx context.Context, m *Merge, merged []Merged) error
}

// Merge is sends that were recorded elsewhere.
type Merge struct {
	Users    []UserID  // distinct, any order (ascending is fastest)
	Logs     []Log     // Logs[i] is of Users[i], in time order, a channel and token once
	Messages []Message // of the logs' tokens, to be remembered as long as their sends; none need be there
	// Retention is how long an entry is kept, as in Batch. Entries that are older are not merged.
	Retention time.Duration
	// Counted: the sends count for their messages too, where Messages has them, as if Filter
	// had recorded them.
	Counted bool
}

// Merged is what became of a user. The zero value is a user that was not settled.
type Merged struct {
	Done bool
	// entries that the log had not held before; see MergedOf. Of a user who was asked for again within the call, those
	// of the last time
	Added uint16
}

// Check is why no store can take m, with so many results to set; nil: every store can. That
// users are distinct is not checked: both logs of one who is given twice are merged.
func (m *Merge) Check(merged []Merged) error {
	switch {
	case len(m.Logs) != len(m.Users) || len(merged) != len(m.Users):
		return fmt.Errorf("merge of %d users must have one log and one result per user, got %d and %d",
			len(m.Users), len(m.Logs), len(merged))
	case m.Retention < MinRetention || m.Retention > MaxRetention:
		return fmt.Errorf("retention: must be %v to %v, got %v", MinRetention, MaxRetention, m.Retention)
	}
	for i, log := range m.Logs {
		if err := log.Check(); err != nil {
			return fmt.Errorf("user %d: %w", m.Users[i], err)
		}
		if n := log.Len(); n > 0 && log.At(n-1) >= Never {
			return fmt.Errorf("user %d: log entry has time %d and must be below %d", m.Users[i], log.At(n-1), Never)
		}
	}
	for _, message := range m.Messages {
		if message.ID == "" || len(message.Text()) > MaxMessageText {
			return fmt.Errorf("message id has %d bytes and must have 1 to %d", len(message.Text()), MaxMessageText)
		}
	}
	return nil
}

// MergedOf is that so many entries were added. Counts beyond what it can hold are its most.
func MergedOf(added int) Merged { return Merged{Done: true, Added: uint16(min(added, math.MaxUint16))} }

// Union appends to dst the log with the entries of other, and reports how many of those it
// brings that l did not have: all are later than horizon, in time order, and at most
// LogBound of a channel, the newest. An entry of other whose token the log already has on the
// channel is the same send: the log's stays, with its time. Entries without a token are
// the same when their times are. Of equal times, and where there is no room for all, those of the log
// count as newer: so what did not fit does not fit the next time either.
func (l Log) Union(dst []byte, other Log, horizon Instant) (log []byte, added int) {
	l, other = l.Live(horizon), other.Live(horizon)
	fresh := l.lacking(other)
	if len(fresh) == 0 {
		return append(dst, l...), 0
	}
	excess := l.excess(fresh)
	for len(l) > 0 || len(fresh) > 0 {
		next, isNew := &l, len(l) == 0 || len(fresh) > 0 && fresh.At(0) <= l.At(0)
		if isNew {
			next = &fresh
		}
		if channel := next.Channel(0); excess[channel] > 0 {
			excess[channel]--
		} else {
			dst = append(dst, (*next)[:EntrySize]...)
			if isNew {
				added++
			}
		}
		*next = (*next)[EntrySize:]
	}
	return dst, added
}

// lacking is the entries of other that l does not have, each once.
func (l Log) lacking(other Log) (fresh Log) {
	if max(l.Len(), other.Len()) > shortLog {
		return l.lackingOfLong(other)
	}
	for i := range other.Len() {
		if e := other.Entry(i); !l.has(e) && !fresh.has(e) {
			fresh = append(fresh, other[i*EntrySize:(i+1)*EntrySize]...)
		}
	}
	return fresh
}

// shortLog is how many entries are looked through faster than a set of them is made, which takes memory.
const shortLog = 32

// lackingOfLong is lacking, in time that is linear.
func (l Log) lackingOfLong(other Log) (fresh Log) {
	seen := make(map[Entry]struct{}, l.Len()+other.Len())
	for i := range l.Len() {
		seen[l.Entry(i).send()] = struct{}{}
	}
	for i := range other.Len() {
		send, n := other.Entry(i).send(), len(seen)
		if seen[send] = struct{}{}; len(seen) > n {
			fresh = append(fresh, other[i*EntrySize:(i+1)*EntrySize]...)
		}
	}
	return fresh
}

// send is the same of entries that are the same send.
func (e Entry) send() Entry {
	if e.Token != (Token{}) {
		e.At = 0
	}
	return e
}

// has reports whether an entry of the log is the same send as e.
func (l Log) has(e Entry) bool {
	for i := range l.Len() {
		if Token(l[i*EntrySize+6:]) == e.Token && l.Channel(i) == e.Channel &&
			(e.Token != (Token{}) || l.At(i) == e.At) {
			return true
		}
	}
	return false
}

// excess is, by channel, how many entries of both together are more than a log holds; nil of few entries.
func (l Log) excess(fresh Log) map[Channel]int {
	if l.Len()+fresh.Len() <= LogBound {
		return nil
	}
	excess := map[Channel]int{}
	for _, log := range []Log{l, fresh} {
		for i := range log.Len() {
			excess[log.Channel(i)]++
		}
	}
	for channel, n := range excess {
		excess[channel] = max(0, n-LogBound)
	}
	return excess
}

// Sent is one send that was recorded elsewhere, to one user.
type Sent struct {
	User UserID
	Entry
}

// MergeOf is the sends by user, and in time order; sent is sorted. Those that are the same send as an
// earlier one, by their token and channel or, without a token, their time, are left out, and so are
// all but the LogBound newest of a user's channel: no log has room for more.
func MergeOf(sent []Sent) *Merge {
	slices.SortStableFunc(sent, func(a, b Sent) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.At, b.At))
	})
	m := &Merge{}
	all := make(Log, 0, EntrySize*len(sent))
	for i := 0; i < len(sent); {
		start, user := len(all), sent[i].User
		for ; i < len(sent) && sent[i].User == user; i++ {
			all = sent[i].append(all)
		}
		m.Users, m.Logs = append(m.Users, user), append(m.Logs, all[start:len(all):len(all)].distinct())
	}
	return m
}

// distinct is the sends of the log, each once, as many of each channel as a log holds. l is used up.
func (l Log) distinct() Log {
	if l.Len() == 1 {
		return l
	}
	all := Log(nil).lacking(l)
	excess, kept := all.excess(nil), l[:0]
	for i := range all.Len() {
		if channel := all.Channel(i); excess[channel] > 0 {
			excess[channel]--
			continue
		}
		kept = append(kept, all[i*EntrySize:(i+1)*EntrySize]...)
	}
	return kept
}
