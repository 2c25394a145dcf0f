package pebblestore

import (
	"context"
	"time"

	"capper/internal/pacing"
)

var _ pacing.RecordStore = (*Store)(nil)

// HasRequest looks up a request for permits by the hash of the request, and reports whether the store remembers it.
func (s *Store) HasRequest(ctx context.Context, group string, r pacing.Request) (bool, error) {
	return s.pacers.HasRequest(ctx, group, r)
}

// HasLog reports whether a log is stored for the target, which is a pacer, or a message or key of a pacer.
func (s *Store) HasLog(ctx context.Context, target *pacing.Target) (bool, error) {
	return s.pacers.HasLog(ctx, target)
}

// AddRecords adds to the numbers of pacers' stored records; see pacing.RecordStore.
func (s *Store) AddRecords(
	ctx context.Context, added map[pacing.RecordGroup]int, now time.Time,
) (map[pacing.RecordGroup]int, error) {
	return s.pacers.AddRecords(ctx, added, now)
}
