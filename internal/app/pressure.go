package app

import (
	"context"

	"capper/internal/pressure"
	"capper/internal/server"
)

// The method pressure returns a function that counts the messages per person in the audit, or nil if no audit is
// configured.
func (s *Service) pressure() server.Pressure {
	if s.journal == nil {
		return nil
	}
	return func(ctx context.Context, cfg pressure.Config) (*pressure.Result, error) {
		if err := s.journal.Flush(ctx); err != nil {
			return nil, err
		}
		return pressure.Of(ctx, s.recorded, cfg)
	}
}
