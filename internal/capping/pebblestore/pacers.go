package pebblestore

import (
	"context"

	"capper/internal/pacing"
)

// TakePermits places permits in the logs of pacers; see pacing.Store.
func (s *Store) TakePermits(ctx context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	return s.pacers.TakePermits(ctx, ask)
}

// ForgetPacer removes the logs of a pacer; see pacing.Store.
func (s *Store) ForgetPacer(ctx context.Context, pacer string) error {
	return s.pacers.ForgetPacer(ctx, pacer)
}

// sweepPacers is sweepStep for the logs of pacers, and the requests that took of them.
func (s *Store) sweepPacers(_ context.Context, from []byte) (next []byte, err error) {
	err = s.db.Rescue(func() error {
		next, err = s.pacers.Sweep(from, sweepKeys)
		return err
	})
	return next, err
}
