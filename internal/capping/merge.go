package capping

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// Merger is an optional interface of stores that can import sends from another program or store (see As). Imported
// sends keep their original times. A Merger is safe for concurrent use.
type Merger interface {
	// Merge combines the log of each user with the given log, by the rules of Log.Union, and sets merged[i] for
	// Users[i]. The store merges the log of each user in one atomic step, in parallel with calls that decide. Merged
	// sends are as durable as sends that Filter recorded. If merged[i].Done is false, the store may or may not have
	// merged the log of the user. After such a result, the caller can repeat the merge safely. The error is for
	// operators and is nil exactly when every user is done. If Merge.Check rejects m, Merge returns an error and does
	// not change the store.
	Merge(ctx context.Context, m *Merge, merged []Merged) error
}

// A Merge is an import request. For each user, a Merge holds the sends that another system recorded.
type Merge struct {
	Users    []UserID  // distinct users in any order; ascending is fastest
	Logs     []Log     // Logs[i] belongs to Users[i]: in time order, each pair of channel and token once
	Messages []Message // messages of the logs' tokens, remembered as long as their sends; may be empty
	// Retention is the time for which the store keeps a log entry, as in Batch. The store does not merge sends older
	// than Retention.
	Retention time.Duration
	// If Counted is true, the merge adds the sends to the counts of the messages in Messages, as for sends that Filter
	// recorded.
	Counted bool
}

// Merged says whether the store merged the log of one user. The zero value of Merged means that the result is unknown:
// the store may or may not have merged the log.
type Merged struct {
	Done bool
	// Added is the number of merged entries that the user's log did not have before; see MergedOf. If the store retries
	// a user within a call, Added is the number from the last attempt.
	Added uint16
}

// Check returns an error if no store could perform the import, or if the number of results is wrong. The method Check
// does not look for duplicate users. If the field Users lists a user twice, the store merges both logs of that user.
func (m *Merge) Check(merged []Merged) error {
	switch {
	case len(m.Logs) != len(m.Users) || len(merged) != len(m.Users):
		return fmt.Errorf(
			"merge of sends must have one log and one result for each of %d users, "+
				"got %d logs and %d results",
			len(m.Users), len(m.Logs), len(merged))
	case m.Retention < MinRetention || m.Retention > MaxRetention:
		return fmt.Errorf("retention, the time for which sends are stored, must be %v to %v, got %v",
			MinRetention, MaxRetention, m.Retention)
	}
	for i, log := range m.Logs {
		if err := log.Check(); err != nil {
			return fmt.Errorf("user %d: %w", m.Users[i], err)
		}
		if n := log.Len(); n > 0 && log.At(n-1) >= Never {
			return fmt.Errorf(
				"user %d: the time of a send must be below %d ms since 2024-01-01T00:00:00Z, got %d",
				m.Users[i], Never, log.At(n-1))
		}
	}
	for _, message := range m.Messages {
		if message.ID == "" || len(message.Text()) > MaxMessageText {
			return fmt.Errorf("message id must have 1 to %d bytes, got %d", MaxMessageText, len(message.Text()))
		}
	}
	return nil
}

// MergedOf returns the Merged value for a user whose log got the given number of new entries. MergedOf stores numbers
// above 65,535 as 65,535.
func MergedOf(added int) Merged { return Merged{Done: true, Added: uint16(min(added, math.MaxUint16))} }

// The method Union appends the entries of the logs "l" and "other" to dst in time order, and returns the number of
// entries that came only from "other". The method Union leaves out entries that are not later than the time "horizon",
// and keeps at most the newest LogBound entries of each channel. If both logs have an entry with the same channel and
// token (short hash of a message), both entries are the same send. The method Union keeps the entry of the log "l". Two
// entries without a token (short hash of a message) are the same send when their times are equal. If an entry of the
// log "l" and an entry of the log "other" have the same time, Union treats the entry of "l" as newer. A repeated merge
// of the same log adds nothing.
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

// The method "lacking" returns the sends of the log "other" that the log "l" does not have, each send once.
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

// shortLog is the largest number of log entries for which a linear search is faster than a hash set, which allocates
// memory.
const shortLog = 32

// Like the method "lacking", lackingOfLong returns the sends of the log "other" that the log "l" does not have, but
// takes linear time even for long logs.
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

// The method "send" returns a comparison value: two log entries have equal values if both entries record the same send.
func (e Entry) send() Entry {
	if e.Token != (Token{}) {
		e.At = 0
	}
	return e
}

// The method "has" reports whether some entry of the log is the same send as the entry e.
func (l Log) has(e Entry) bool {
	for i := range l.Len() {
		if Token(l[i*EntrySize+6:]) == e.Token && l.Channel(i) == e.Channel &&
			(e.Token != (Token{}) || l.At(i) == e.At) {
			return true
		}
	}
	return false
}

// The method "excess" returns, for each channel, the number of entries above LogBound in the logs "l" and "fresh"
// together. If both logs together have at most LogBound entries, the result is nil.
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

// Sent is one send to one user that another system recorded.
type Sent struct {
	User UserID
	Entry
}

// MergeOf groups the sends by user in time order. MergeOf sorts the argument "sent" in place. MergeOf leaves out a send
// that has the same channel and token (short hash of the message) as an earlier send. Two sends without a token (short
// hash of a message) count as the same send when their times are equal. MergeOf keeps only the newest LogBound sends of
// each user and channel, because a log holds no more.
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

// The method "distinct" removes repeated sends from a log, and keeps at most LogBound sends of each channel. The method
// "distinct" overwrites the log l.
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
