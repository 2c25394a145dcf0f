package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

// ledgerCopies returns the partitions that have a copy of the ledger (list of promises that Redis servers have broken).
// The copies of the ledger are in partitions far apart in the hash slots, because a server that evicts keys may evict
// its own copy.
func ledgerCopies(l script.Keyspace) []int {
	copies := []int{l.FormatPartition(), 0, l.Partitions / 3, 2 * l.Partitions / 3}
	slices.Sort(copies)
	return slices.Compact(copies)
}

// openLedger reads the ledger (list of broken promises) from Redis, and compares it with the present state of the
// servers. The comparison reveals keys that a server evicted while no instance of capper ran. The argument "made" of
// openLedger is true if the store was just created and has no records.
func (f *fleet) openLedger(ctx context.Context, made bool) {
	if made {
		f.top.BeginLedger()
	}
	f.keepLedger(ctx)
	if err := f.top.LookAtPromises(ctx); err != nil {
		f.config.Logger.Warn("Redis start-up check", "warning", "some masters did not report evicted keys and "+
			"their append-only file in time; the next check follows soon: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if before := f.top.EvictedBefore(); !made {
		for _, node := range slices.Sorted(maps.Keys(before)) {
			f.warnings = append(f.warnings, fmt.Sprintf("node %s: evicted %d keys before this version of capper "+
				"first checked: users whose logs were evicted may receive more than their limits", node, before[node]))
			f.config.Logger.Warn("Redis start-up check", "warning", f.warnings[len(f.warnings)-1])
		}
	}
	f.keepLedger(ctx)
}

// keepLedger merges the ledger (list of broken promises) in memory with the copies of the ledger in Redis. If the
// server with a copy of the ledger does not answer, keepLedger tries again at the next heartbeat.
func (f *fleet) keepLedger(ctx context.Context) {
	_, _ = f.top.KeepLedger(ctx, f.signLife(), f.longestWindow())
}

// longestWindow returns the time after which a lost send can no longer change a decision. Health reports an accepted
// loss of data until the lost sends can no longer change a decision.
func (f *fleet) longestWindow() time.Duration { return f.retention() }

// acceptedWarnings returns warnings about losses of data that operators have accepted. A warning ends when no limit
// counts sends from before the loss any more.
func (s *Store) acceptedWarnings() (warnings []string) {
	for _, b := range s.top.AcceptedPromises(s.fleet.longestWindow()) {
		warnings = append(warnings, fmt.Sprintf("node %s: %s, since %s: accepted at %s (%s): users of %d partitions "+
			"may receive more than their limits until %s",
			b.Node, b.What, stamp(b.Since), stamp(b.Accepted), b.Why, b.Partitions,
			stamp(b.Accepted.Add(s.fleet.longestWindow()))))
	}
	return warnings
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// mendRecords creates the shared records (records in Redis that all instances share) again after servers have lost
// them. If the partition of the shared records has also lost data for another reason, mendRecords does nothing.
func (f *fleet) mendRecords(ctx context.Context) error {
	if err := f.renew(ctx, script.LookOnly); err != nil {
		return fmt.Errorf("read the records in Redis that describe the store: %w", err)
	}
	p := f.keyspace.FormatPartition()
	if f.seen.Load().gone == nil || !f.top.Broken(p) || f.top.Lost()[p] != nil {
		return nil
	}
	mode := script.MakeOrMend
	if f.top.Signed() { // a missing sentinel key still means lost data
		mode = script.Mend
	}
	if err := f.renew(ctx, mode); err != nil {
		return fmt.Errorf("recreate the records in Redis that describe the store: %w", err)
	}
	return nil
}

// AcceptLoss accepts that Redis servers with a broken promise may have lost data. After AcceptLoss, the store decides
// about the affected users again, from the remaining logs.
func (s *Store) AcceptLoss(ctx context.Context, reason string) ([]capping.AcceptedLoss, error) {
	f := s.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.told()
	if _, err := f.top.KeepLedger(ctx, f.signLife(), f.longestWindow()); err != nil {
		return nil, fmt.Errorf("read the records in Redis about servers that may have lost sends: %w", err)
	}
	mend := func() error {
		for p, err := range f.beginRestoration(ctx, f.withUsers(f.top.AllBroken())) {
			return fmt.Errorf("restore lost changes of sets (named groups of users) in partition %d of Redis: %w",
				p, err)
		}
		return f.mendRecords(ctx)
	}
	accepted, err := f.top.Accept(ctx, reason, mend, func() error {
		kept, err := f.top.KeepLedger(ctx, f.signLife(), f.longestWindow())
		if kept > 0 {
			return nil
		}
		return fmt.Errorf("record the accepted loss: %w", err)
	})
	var refused *topology.AcceptError
	if errors.As(err, &refused) {
		return nil, &capping.LossError{Err: refused}
	}
	var losses []capping.AcceptedLoss
	for _, b := range accepted {
		losses = append(losses, capping.AcceptedLoss{Node: b.Node, Reason: b.Reason, What: b.What, Since: b.Since,
			Partitions: b.Partitions})
	}
	return losses, err
}
