package pebblestore

import (
	"context"
	"time"

	"capper/internal/pacing"
)

var _ pacing.RecordStore = (*Store)(nil)

// HasRequest reports whether the store remembers the permit request with the hash r.
func (s *Store) HasRequest(ctx context.Context, group string, r pacing.Request) (bool, error) {
	return s.pacers.HasRequest(ctx, group, r)
}

// HasLog reports whether the store has a log of the target: of a pacer, or of a message or key of a pacer.
func (s *Store) HasLog(ctx context.Context, target *pacing.Target) (bool, error) {
	return s.pacers.HasLog(ctx, target)
}

// AddRecords adds to the numbers of pacers' stored records; see pacing.RecordStore.
func (s *Store) AddRecords(
	ctx context.Context, added map[pacing.RecordGroup]int, now time.Time,
) (map[pacing.RecordGroup]int, error) {
	return s.pacers.AddRecords(ctx, added, now)
}
