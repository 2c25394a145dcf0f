package pebblestore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"capper/internal/capping"
	"capper/internal/messages"
)

// The method Merge merges logs from another system into the users' logs; see capping.Merger. If the deadline passes
// before the sync at the end, Merge returns an error, and no result is valid.
func (s *Store) Merge(ctx context.Context, m *capping.Merge, merged []capping.Merged) error {
	if err := m.Check(merged); err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	if len(m.Users)+len(m.Messages) == 0 {
		return nil
	}
	if err := s.db.CheckUsers(m.Users...); err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	c := s.calls.Get().(*call)
	c.merged = zeroed(c.merged, len(m.Users))
	kept := *m
	kept.Users, kept.Logs, kept.Messages = nil, cloned(m.Logs), slices.Clone(m.Messages)
	c.begin(m.Users, s.runs, nil)
	if err := s.db.Write(ctx, func() error { return s.merge(ctx, c, &kept) }); err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	copy(merged, c.merged)
	err := c.err
	s.calls.Put(c)
	return err
}

func cloned(logs []capping.Log) []capping.Log {
	size := 0
	for _, log := range logs {
		size += len(log)
	}
	all, copies := make(capping.Log, 0, size), make([]capping.Log, len(logs))
	for i, log := range logs {
		all = append(all, log...)
		copies[i] = all[len(all)-len(log) : len(all) : len(all)]
	}
	return copies
}

func (s *Store) merge(ctx context.Context, c *call, m *capping.Merge) error {
	retention, err := s.retain(m.Retention, true)
	if err != nil {
		return err
	}
	if m.Counted {
		if c.counting, err = s.countingMerged(m); err != nil {
			return err
		}
	}
	c.step = merging(c, m.Logs, retention)
	if err := s.run(ctx, c); err != nil {
		return err
	}
	if len(m.Messages) > 0 {
		if err := s.remember(retention, m.Messages...); err != nil {
			return err
		}
	}
	return s.db.Sync(ctx) // an existing send may come from a call that is not durable yet
}

// The function "merging" returns a step function that merges one of the given logs into one user's log.
func merging(c *call, logs []capping.Log, retention time.Duration) step {
	return func(now capping.Instant, index int, log capping.Log, dst []byte) ([]byte, bool) {
		next, added := log.Union(dst, logs[index], now-capping.Instant(retention.Milliseconds()))
		c.merged[index] = capping.MergedOf(added)
		return next, added > 0
	}
}

// countingMerged returns the counts of messages that change when the store adds the entries of the merge m.
func (s *Store) countingMerged(m *capping.Merge) (c counting, err error) {
	now, err := s.db.Now()
	if err != nil {
		return c, err
	}
	owned := make(map[capping.Token]capping.Message, len(m.Messages))
	for _, message := range m.Messages {
		owned[message.Token()] = message
	}
	begun := make(map[messages.Key]bool)
	for _, log := range m.Logs {
		for i := range log.Len() {
			e := log.Entry(i)
			message, counted := owned[e.Token]
			if key := (messages.Key{Message: message, Channel: e.Channel}); counted && !begun[key] {
				begun[key] = true
				c.lives = append(c.lives, s.counts.Begin(key, now)...)
			}
		}
	}
	c.tally = func(t *Tally, before, after capping.Log) {
		had := membersOf(before)
		for i := range after.Len() {
			if e := after.Entry(i); owned[e.Token].ID != "" && !had(e) {
				t.Of(e.Token, e.Channel).Recorded++
			}
		}
	}
	return c, nil
}

// membersOf returns a function that reports whether the log has an entry with the same time, channel and token (short
// hash of a message) as a given entry. A merge does not change the times of existing entries, so equal entries also
// have equal times.
func membersOf(log capping.Log) func(capping.Entry) bool {
	if log.Len() <= 32 { // a search among so few entries is faster than a hash set
		return func(e capping.Entry) bool {
			for i := range log.Len() {
				if log.Entry(i) == e {
					return true
				}
			}
			return false
		}
	}
	set := make(map[capping.Entry]struct{}, log.Len())
	for i := range log.Len() {
		set[log.Entry(i)] = struct{}{}
	}
	return func(e capping.Entry) bool { _, has := set[e]; return has }
}
