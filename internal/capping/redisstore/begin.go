package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
)

// The method "start" finds or creates the shared records of all instances in Redis. The method "start" also finds or
// creates the partitions' sentinel keys (marker keys that reveal lost data). The method "start" logs new and lost
// records.
func (f *fleet) start(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	had, asked, err := f.makeRecords(ctx)
	if err != nil {
		return fmt.Errorf("the records that all instances share cannot be read, so no instance can start: %w", err)
	}
	if m := f.mismatch.Load(); m != nil {
		return m
	}
	if f.seen.Load().gone != nil {
		return fmt.Errorf("no store exists in Redis for namespace %s: the namespace is new, or its records are lost: "+
			"set store.redis.create: true to create an empty store", f.config.Namespace)
	}
	if err := f.restoreForOthers(ctx, had); err != nil {
		return err
	}
	f.lookAtSigns(ctx, nil)
	f.openLedger(ctx, f.seen.Load().made && had == 0)
	defer f.told()
	switch {
	case !f.seen.Load().made:
	case had == 0:
		f.made = true
	default:
		f.warnOfLoss(fmt.Sprintf("the store's records and the signs of %d of %d partitions were gone, and what was "+
			"recorded there", asked-had, asked))
	}
	return f.mend(ctx)
}

// makeRecords finds the records in Redis that all instances share. If Redis has no shared records, makeRecords creates
// new ones. Before makeRecords creates shared records, it counts the partitions with a sentinel key (a marker key that
// reveals lost data). The result "asked" of makeRecords is the number of partitions whose server has replied. The
// result "had" of makeRecords is the number of partitions with a sentinel key, among the partitions whose server has
// replied. A sentinel key shows that a store existed here earlier, because no instance creates sentinel keys for a
// store without records.
func (f *fleet) makeRecords(ctx context.Context) (had, asked int, err error) {
	if err := f.renewUntilDone(ctx, script.Adopt); err != nil || f.config.MustExist || f.seen.Load().gone == nil {
		f.judgeAdopted(ctx)
		return 0, 0, err
	}
	had, asked = f.top.CountSigns(ctx, f.signLife())
	return had, asked, f.renewUntilDone(ctx, script.MakeOrMend)
}

// judgeAdopted decides whether a store without the shared record (record in Redis that all instances share) has lost
// this record. If the store has no sentinel keys (marker keys that reveal lost data), an older version of capper
// created the store. If the store has sentinel keys, judgeAdopted decides that the shared record was lost. If the
// shared record was lost, judgeAdopted records that a missing sentinel key means lost data.
func (f *fleet) judgeAdopted(ctx context.Context) {
	if !f.seen.Load().adopted {
		return
	}
	if had, _ := f.top.CountSigns(ctx, f.signLife()); had > 0 {
		f.markSigned(ctx)
	}
}

func (f *fleet) renewUntilDone(ctx context.Context, m script.Mode) error {
	for {
		err := f.renew(ctx, m)
		if err == nil {
			return nil
		}
		if topology.Pause(ctx, startPause); ctx.Err() != nil {
			return err
		}
	}
}

// signLife returns the TTL of sentinel keys (marker keys that reveal lost data), which every check of a sentinel key
// sets again.
func (f *fleet) signLife() time.Duration { return max(leastLife, 2*f.retention()) }

// warnOfLoss logs that the start of this process has accepted a loss of data, and keeps the warning for Health.
func (f *fleet) warnOfLoss(what string) {
	warning := "store created again from the remaining data: " + what
	f.warnings = append(f.warnings, warning)
	f.config.Logger.Error("Redis store", "warning", warning)
}

// The method "mend" accepts a loss of records at the start of the process, and creates the missing sentinel keys
// (marker keys that reveal lost data) again. If records are lost and Config.MustExist is true, "mend" accepts nothing
// and returns an error.
func (f *fleet) mend(ctx context.Context) error {
	accepted, whats := map[int]bool{}, map[string]int{}
	for p, bar := range f.top.Lost() {
		accepted[p] = true
		whats[bar.What()]++
	}
	if len(accepted) == 0 {
		return nil
	}
	for what, n := range whats {
		warning := fmt.Sprintf("%d of %d partitions (the total includes the partition of the store's records): %s",
			n, f.keyspace.Partitions+1, what)
		if f.config.MustExist {
			return fmt.Errorf("%s: set store.redis.create: true to create the store again from the remaining data",
				warning)
		}
		f.warnOfLoss(warning)
	}
	for p, err := range f.beginRestoration(ctx, f.withUsers(slices.Collect(maps.Keys(accepted)))) {
		delete(accepted, p)
		f.warnOfLoss(fmt.Sprintf("partition %d stays in quarantine: %v", p, err))
	}
	f.lookAtSigns(ctx, accepted)
	return nil
}

// restoreForOthers begins to restore live changes (changes of sets by API calls) in all partitions. If this start has
// not created the store, or if no other instances are running, restoreForOthers does nothing. The other instances may
// still have live changes from an earlier store in their memory.
func (f *fleet) restoreForOthers(ctx context.Context, had int) error {
	seen := f.seen.Load()
	if !seen.made || had > 0 || len(seen.others.other) == 0 {
		return nil
	}
	var all []int
	for p := range f.keyspace.Partitions {
		all = append(all, p)
	}
	for p, err := range f.beginRestoration(ctx, all) {
		return fmt.Errorf("restore lost changes of sets (named groups of users) in partition %d of Redis: %w", p, err)
	}
	return nil
}

// withUsers returns the given partitions without the partition of the shared records, because that partition has no
// users.
func (f *fleet) withUsers(partitions []int) []int {
	return slices.DeleteFunc(partitions, func(p int) bool { return p >= f.keyspace.Partitions })
}

// lookAtSigns checks the sentinel keys (marker keys that reveal lost data) of all partitions. Until the store has
// recorded that every partition had a sentinel key, lookAtSigns creates missing sentinel keys. The argument "accept" of
// lookAtSigns holds the partitions whose loss of data this start has accepted.
func (f *fleet) lookAtSigns(ctx context.Context, accept map[int]bool) {
	look := topology.Look{
		Make: !f.top.Signed() && f.seen.Load().gone == nil, Accept: accept,
		Life: f.signLife(),
	}
	if all := f.top.LookAtSigns(ctx, look); all && look.Make {
		f.markSigned(ctx)
	}
}

// markSigned records in Redis that all partitions have sentinel keys (marker keys that reveal lost data). After
// markSigned, a missing sentinel key means that a Redis server has lost data.
func (f *fleet) markSigned(ctx context.Context) {
	if n := f.top.Route(f.keyspace.FormatPartition()); n != nil && n.Client().HSet(ctx, f.marker.StoreKey(), "signed",
		"1").Err() == nil {
		f.top.SetSigned(true)
	}
}
