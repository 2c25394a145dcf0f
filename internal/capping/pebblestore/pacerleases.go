package pebblestore

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// leasePrefix is the prefix of the database keys of leases (time limits for unused permits).
var leasePrefix = []byte{database.KeyMeta, 0xFF, 8}

// The stored value of a lease (time limit for unused permits) has three parts: the version (1 byte), the time of the
// end (8 bytes) and the permit request.
const (
	leaseVersion = 1
	leaseHeader  = 1 + 8
)

func leaseKey(r pacing.Request) []byte { return append(append([]byte(nil), leasePrefix...), r[:]...) }

// The type "leases" holds the end time of each lease (time limit for unused permits) of a permit request in memory. The
// permit requests of the leases are only in the database.
type leases struct {
	ends  map[pacing.Request]pacing.Time
	first pacing.Time // no lease ends earlier
}

// loadLeases reads all leases (time limits for unused permits) from the database, and ignores unreadable leases. If the
// store ignores a lease, limits count the lease's unused permits until their slots (send times) have passed.
func loadLeases(db *database.DB) (leases, error) {
	l := leases{ends: map[pacing.Request]pacing.Time{}, first: pacing.Never}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: leasePrefix, UpperBound: database.After(leasePrefix)})
	if err != nil {
		return l, err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		request := it.Key()[len(leasePrefix):]
		if ends, _, err := decodeLease(it.Value()); err == nil && len(request) == len(pacing.Request{}) {
			l.set(pacing.Request(request), ends)
		}
	}
	return l, it.Error()
}

func (l *leases) set(r pacing.Request, ends pacing.Time) {
	l.ends[r] = ends
	l.first = min(l.first, ends)
}

// The method "ended" returns ended leases (time limits for unused permits), at most "most" of them. In the result, the
// lease that ended last comes first.
func (l *leases) ended(now pacing.Time, most int) (requests []pacing.Request) {
	if l.first > now {
		return nil
	}
	first := pacing.Never
	for r, ends := range l.ends {
		if ends <= now {
			requests = append(requests, r)
		}
		first = min(first, ends)
	}
	l.first = first
	slices.SortFunc(requests, func(a, b pacing.Request) int { return cmp.Compare(l.ends[b], l.ends[a]) })
	return requests[:min(most, len(requests))]
}

func encodeLease(ends pacing.Time, call []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{leaseVersion}, uint64(ends)), call...)
}

func decodeLease(value []byte) (ends pacing.Time, call []byte, err error) {
	if len(value) < leaseHeader || value[0] != leaseVersion {
		return 0, nil, damaged("value has %d bytes, but must have at least %d bytes and begin with the byte %d",
			len(value), leaseHeader, leaseVersion)
	}
	return pacing.Time(binary.BigEndian.Uint64(value[1:])), value[leaseHeader:], nil
}

// KeepLease begins or extends the lease (time limit for unused permits) of a permit request; see pacing.Leases. The
// leases of all groups of pacers are stored together, so KeepLease ignores the group.
func (l *pacerLogs) KeepLease(ctx context.Context, _ string, r pacing.Request, lasts time.Duration, call []byte) (
	pacing.LeaseState, error) {
	var state pacing.LeaseState
	err := l.db.Write(ctx, func() (err error) {
		if state, err = l.keepLease(r, lasts, call); err != nil || state == pacing.LeaseEnded {
			return err
		}
		return l.db.Sync(ctx)
	})
	if err != nil {
		return 0, fmt.Errorf("store the lease (time for which a sender holds permits) of a permit request: %w", err)
	}
	return state, nil
}

func (l *pacerLogs) keepLease(r pacing.Request, lasts time.Duration, call []byte) (pacing.LeaseState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := l.now()
	if err != nil {
		return 0, err
	}
	state, ends := pacing.LeaseBegun, now.Add(lasts)
	if before, known := l.leases.ends[r]; known {
		if before <= now {
			return pacing.LeaseEnded, nil
		}
		value, err := l.db.Lookup(leaseKey(r))
		if err != nil {
			return 0, err
		}
		if _, first, err := decodeLease(value); err == nil {
			call = first
		}
		state, ends = pacing.LeaseExtended, max(before, ends)
	}
	batch := l.db.NewBatch()
	defer batch.Close()
	_ = batch.Set(leaseKey(r), encodeLease(ends, call), nil) // fails only for indexed batches
	l.db.Commit(batch)
	l.leases.set(r, ends)
	return state, l.db.Broken()
}

// EndedLeases returns the ended leases (time limits for unused permits) of permit requests to all groups of pacers; see
// pacing.Leases.
func (l *pacerLogs) EndedLeases(ctx context.Context, _ string, most int) ([]pacing.Lease, error) {
	var ended []pacing.Lease
	err := l.db.Read(ctx, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		now, err := l.now()
		if err != nil {
			return err
		}
		for _, r := range l.leases.ended(now, most) {
			value, err := l.db.Lookup(leaseKey(r))
			if err != nil {
				return err
			}
			_, call, _ := decodeLease(value) // a lease without a call is only removed
			ended = append(ended, pacing.Lease{Request: r, Ended: now.Sub(l.leases.ends[r]), Call: call})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list ended leases: %w", err) // the read may still be in progress and change ended
	}
	return ended, nil
}

// RemoveLease removes the lease (time limit for unused permits) of a permit request if the lease has ended; see
// pacing.Leases. A crash may undo the removal, so that the caller has to remove the lease again.
func (l *pacerLogs) RemoveLease(ctx context.Context, _ string, r pacing.Request) error {
	err := l.db.Write(ctx, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		now, err := l.now()
		ends, known := l.leases.ends[r]
		if err != nil || !known || ends > now {
			return err
		}
		batch := l.db.NewBatch()
		defer batch.Close()
		_ = batch.Delete(leaseKey(r), nil) // fails only for indexed batches
		l.db.Commit(batch)
		delete(l.leases.ends, r)
		return l.db.Broken()
	})
	if err != nil {
		return fmt.Errorf("remove the ended lease (time for which a sender holds permits) of a permit request: %w", err)
	}
	return nil
}
