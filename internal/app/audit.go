package app

import (
	"context"

	"capper/internal/audit/archive"
	"capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/config/policytext"
	"capper/internal/server/messages"
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

// grants is where it stands to whom messages were sent: what all instances have recorded,
// and this one until now.
type grants struct {
	*archive.Archive
	journal *journal.Journal
}

// Flush implements messages.Audit.
func (g grants) Flush(ctx context.Context) error { return g.journal.Flush(ctx) }

// auditOfMessages is the audit for releases of all sends of a message; nil without an audit.
func (s *Service) auditOfMessages() messages.Audit {
	if s.journal == nil {
		return nil
	}
	return grants{archive.New(s.journal.Source(), config.ParsePolicy), s.journal}
}

// endAudit writes what was recorded last. It waits less than it may: a place that
// cannot be reached is no reason to stop late.
func (s *Service) endAudit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout/2)
	defer cancel()
	return s.journal.Close(ctx)
}
