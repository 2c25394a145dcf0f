package app

import (
	"context"
	"errors"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/console"
	"capper/internal/messages"
	"capper/internal/server"
	"capper/internal/server/wire"
)

// beginAudit opens the audit (the record of all decisions), if the configuration enables the audit.
func (s *Service) beginAudit(ctx context.Context) (err error) {
	cfg := s.config.Audit
	if cfg.To == "" {
		return nil
	}
	s.journal, err = journal.Open(ctx, journal.Config{
		To: cfg.To, S3: s.config.Segments.S3, Spool: cfg.Spool, Roll: cfg.Roll, MaxWaiting: cfg.MaxWaiting,
		Widening: capping.Widening(s.store), IDs: audit.IDsOf(s.ids()), Clock: s.clock,
		Logger: s.logger, Registerer: s.registry,
	})
	if err != nil {
		return err
	}
	s.journal.SetPolicy(ctx, s.config.Policy.Version, s.config.PolicyText)
	s.recorded = s.archive()
	s.policies.SetPast(s.recordedPolicies)
	return nil
}

// The type "grants" reads the users who received a message from the audit of all instances, including the latest
// records of this instance.
type grants struct {
	*archive.Archive
	journal *journal.Journal
}

// Flush implements server.Audit.
func (g grants) Flush(ctx context.Context) error { return g.journal.Flush(ctx) }

// auditOfMessages returns the audit reader for calls that release all sends of a message, or nil if no audit is
// configured.
func (s *Service) auditOfMessages() server.Audit {
	if s.journal == nil {
		return nil
	}
	return grants{s.recorded, s.journal}
}

// recordedPolicies returns the policies of the decisions in the last month, for the console. Each returned policy has
// the time of the first audit file that names the policy. The result leaves out damaged audit files, and policies whose
// text the audit does not contain. The command `capper audit verify` reports damaged audit files and missing policies.
func (s *Service) recordedPolicies(ctx context.Context) (versions []console.Version, err error) {
	entries, _, err := s.recorded.Entries(ctx,
		archive.Query{Since: capping.InstantOf(s.clock().Add(-messages.MaxKeep))})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, e := range entries {
		for _, version := range e.Configs {
			if seen[version] {
				continue
			}
			seen[version] = true
			policy, err := s.recorded.Policy(ctx, version)
			if errors.Is(err, archive.ErrNoPolicy) {
				continue
			}
			if err != nil {
				return nil, err
			}
			versions = append(versions, console.Version{Policy: wire.Policy(policy, s.capper.Widening()),
				Since: e.First})
		}
	}
	return versions, nil
}

// The method "records" returns a reader of earlier decisions, or nil if no audit is configured.
func (s *Service) records() server.AuditRecords {
	if s.journal == nil {
		return nil
	}
	return s.archive()
}

// The method archive returns a reader of the audit.
func (s *Service) archive() *archive.Archive {
	return archive.New(s.journal.Source(), config.ParsePolicy).Of(audit.IDsOf(s.ids()))
}

// endAudit writes the last audit records. Because an unreachable audit location must not delay the stop for long,
// endAudit waits for at most half of the step's time limit.
func (s *Service) endAudit(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, auditTimeout/2)
	defer cancel()
	return s.journal.Close(ctx)
}
