package app

import (
	"context"

	"capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/config/policytext"
)

// beginAudit begins to record calls, where the configuration says to.
func (s *Service) beginAudit(ctx context.Context) (err error) {
	cfg := s.config.Audit
	if cfg.To == "" {
		return nil
	}
	s.journal, err = journal.Open(ctx, journal.Config{
		To: cfg.To, S3: s.config.Segments.S3, Spool: cfg.Spool, Roll: cfg.Roll, MaxWaiting: cfg.MaxWaiting,
		Widening: capping.Widening(s.store), Clock: s.clock, Logger: s.logger, Registerer: s.registry,
	})
	if err == nil {
		s.journal.SetPolicy(ctx, s.config.Policy.Version, policytext.Of(s.config.Policy))
	}
	return err
}

// endAudit writes what was recorded last. It waits less than it may: a place that
// cannot be reached is no reason to stop late.
func (s *Service) endAudit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout/2)
	defer cancel()
	return s.journal.Close(ctx)
}
