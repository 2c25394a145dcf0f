package pebblestore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"capper/internal/pacing"
)

// recordsKey is the database key of the numbers of pacers' stored records (remembered requests and logs).
var recordsKey = []byte("\x00records")

// A storedGroup is the stored form of a pacing.RecordGroup with its number of records.
type storedGroup struct {
	Client  string `json:"client"`
	Kind    string `json:"kind"`
	Expires int64  `json:"expires"`
	Number  int    `json:"number"`
}

// HasRequest reports whether the store remembers the permit request with the hash r.
func (l *pacerLogs) HasRequest(ctx context.Context, _ string, r pacing.Request) (bool, error) {
	var has bool
	err := l.db.Write(ctx, func() error {
		now, err := l.now()
		if err != nil {
			return err
		}
		value, err := l.db.Lookup(requestKey(r))
		if err != nil || value == nil {
			return err
		}
		expires, err := decodeExpiry(value)
		has = expires > now
		return err
	})
	if err != nil {
		return false, err // the call may still be in progress and set has
	}
	return has, nil
}

// HasLog reports whether the store has a log of the target: of a pacer, or of a message or key of a pacer.
func (l *pacerLogs) HasLog(ctx context.Context, target *pacing.Target) (bool, error) {
	pacer, message := target.Pacer, target.Message
	var has bool
	err := l.db.Write(ctx, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		defer l.cache.shrink()
		e, err := l.entry(pacer, message)
		if err == nil {
			_, has = e.log.Newest()
		}
		return err
	})
	if err != nil {
		return false, err // the call may still be in progress and set has
	}
	return has, nil
}

// AddRecords adds to the numbers of pacers' stored records; see pacing.RecordStore. If the argument "added" is empty,
// AddRecords only reads the stored numbers.
func (l *pacerLogs) AddRecords(
	ctx context.Context, added map[pacing.RecordGroup]int, now time.Time,
) (map[pacing.RecordGroup]int, error) {
	var groups map[pacing.RecordGroup]int
	kept := make(map[pacing.RecordGroup]int, len(added)) // the caller may stop waiting and reuse the map
	for group, n := range added {
		kept[group] = n
	}
	err := l.db.Write(ctx, func() (err error) {
		if groups, err = l.addRecords(kept, now); err != nil || len(kept) == 0 {
			return err
		}
		return l.db.Sync(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("count permit records: %w", err)
	}
	return groups, nil
}

func (l *pacerLogs) addRecords(added map[pacing.RecordGroup]int, now time.Time) (map[pacing.RecordGroup]int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored, err := l.db.Lookup(recordsKey)
	if err != nil {
		return nil, err
	}
	groups, err := decodeRecords(stored, now)
	if err != nil || len(added) == 0 {
		return groups, err
	}
	for group, n := range added {
		groups[group] += n
	}
	value, err := encodeRecords(groups)
	if err != nil {
		return nil, err
	}
	batch := l.db.NewBatch()
	defer batch.Close()
	_ = batch.Set(recordsKey, value, nil) // fails only for indexed batches
	l.db.Commit(batch)
	return groups, l.db.Broken()
}

func encodeRecords(groups map[pacing.RecordGroup]int) ([]byte, error) {
	list := make([]storedGroup, 0, len(groups))
	for g, n := range groups {
		list = append(list, storedGroup{g.Client, string(rune(g.Kind)), g.Expires, n})
	}
	return json.Marshal(list)
}

// decodeRecords returns the number of pacers' stored records in each group that has not expired.
func decodeRecords(value []byte, now time.Time) (map[pacing.RecordGroup]int, error) {
	var list []storedGroup
	if value != nil {
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, fmt.Errorf("decode the stored number of permit records for each client: %w", err)
		}
	}
	groups := make(map[pacing.RecordGroup]int, len(list))
	for _, g := range list {
		if len(g.Kind) == 1 && g.Number > 0 && g.Expires > now.Unix() {
			groups[pacing.RecordGroup{Client: g.Client, Kind: pacing.RecordKind(g.Kind[0]),
				Expires: g.Expires}] += g.Number
		}
	}
	return groups, nil
}
