package app

import (
	"context"
	"slices"
	"time"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/live"
	"capper/internal/messages"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/server"
)

// newServer creates the API server from the components that earlier steps have started.
func (s *Service) newServer(ctx context.Context) (err error) {
	cfg := s.config.Server
	s.audiences.take(s.config)
	s.lists.take(s.config)
	s.capper = capping.New(s.store, func() capping.Segments { return s.lists.use() }, s.config.Policy, s.clock)
	s.warnUnmatched(s.segments.Current())
	s.reportMissing(nil, s.segments.Current())
	s.registry.MustRegister(s.missingSets(), newListAges(s))
	s.reportLists()
	s.pacers = pacing.New(s.permits, s.config.Pacers)
	s.pacers.Bound(pacing.NewRecords(s.kept, cfg.Bounds.PermitRecords, s.clock, s.logger))
	_ = s.pacers.Records().Sync(ctx) // Sync logs an error, and the service calls Sync again each second
	if err := s.countAnswers(); err != nil {
		return err
	}
	limiter, _ := capping.As[capping.RateLimiter](s.store) // nil: each process limits rates alone
	s.api, err = server.New(server.Config{
		Capper: s.capper, IDs: s.ids(), Pacers: s.pacers, Journal: s.journal, Audit: s.auditOfMessages(),
		Records: s.records(), Pressure: s.pressure(), Replay: s.replays(),
		MessageCounts: s.answers,
		Sets:          func() live.Rules { return s.lists.declared.Load().Sets },
		Generations:   s.segments.Pin, History: s.history, Audiences: s.audiences.of,
		Segments: s.segmentsStatus, ConfigStatus: s.configStatus,
		Logger: s.logger, Registerer: s.registry, Gatherer: s.registry,
		Tracer: s.exporter.Tracer(), TraceMessages: s.config.Tracing.MessageIDs,
		Bounds: cfg.Bounds, Access: cfg.Access, Limiter: limiter, AdminSeparate: cfg.AdminListen != "",
		HostNames: cfg.HostNames, Clock: s.clock,
	})
	return err
}

// boundRecords updates the number of stored records of permit requests for each client, until ctx ends.
func (s *Service) boundRecords(ctx context.Context) { s.pacers.Records().Run(ctx) }

// endLeases gives unused permits back to the pacers, if the sender has stopped renewing its lease (time limit for
// unused permits). The method endLeases returns when ctx ends.
func (s *Service) endLeases(ctx context.Context) {
	ticker := time.NewTicker(leasesEvery)
	defer ticker.Stop()
	for failing := false; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		err := s.api.ReturnEnded(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			if failing = failed; failed {
				s.logger.Warn(
					"unused permits of ended leases still count, because the store does not accept their return",
					"error", err.Error())
			} else if err == nil {
				s.logger.Info("the store accepts the return of permits again")
			}
		}
	}
}

// leasesEvery is the time between two searches for ended leases (time limits for unused permits).
const leasesEvery = time.Second

// keepLists merges and removes live changes (changes of sets by API calls) in the background until ctx ends, so that
// look-ups in these sets stay fast.
func (s *Service) keepLists(ctx context.Context) {
	s.lists.tend(ctx, s.clock, func(err error) {
		s.logger.Warn("API changes of sets could not be merged or removed",
			"error", err)
	})
}

// countAnswers creates the counter that counts decisions by message, if the store can keep such counts.
func (s *Service) countAnswers() (err error) {
	if store, ok := capping.As[messages.Store](s.store); ok {
		s.answers, err = messages.NewCounter(store, s.logger, s.registry)
	}
	return err
}

// flushAnswers writes the counts of decisions by message to the store from time to time, until ctx ends.
func (s *Service) flushAnswers(ctx context.Context) {
	if s.answers != nil {
		s.answers.Run(ctx)
	}
}

func (s *Service) segmentsStatus() api.SegmentsStatus {
	status := s.segments.Status()
	answer := api.SegmentsStatus{
		Generation: status.Generation, CreatedAt: status.CreatedAt, LoadedAt: status.LoadedAt, Origin: status.Origin,
		CheckedAt: status.CheckedAt, BuiltAt: status.BuiltAt, Error: status.Error, ErrorAt: status.ErrorAt,
	}
	current := s.segments.Current()
	answer.Segments, answer.Sets = sizes(current.Segments()), sizes(current.Sets())
	for _, pinned := range status.Pinned {
		if pinned.Generation != current.Generation() {
			answer.Pinned = append(answer.Pinned, pinned.Generation)
		}
	}
	s.guardedStatus(&answer, &status)
	return answer
}

func sizes(list []segments.SegmentSize) (sizes []api.SegmentSize) {
	for _, size := range list {
		sizes = append(sizes, api.SegmentSize{Name: size.Name, Users: size.Cardinality, SizeBytes: size.SizeBytes})
	}
	return sizes
}

func (s *Service) configStatus() api.ConfigStatus {
	status := s.watcher.Status()
	return api.ConfigStatus{
		Version: status.Version, LoadedAt: status.LoadedAt, Error: status.Error, ErrorAt: status.ErrorAt,
		Problems: slices.Concat(s.watcher.Current().Warnings, *s.silences.Load(), s.problems(s.segments.Current())),
	}
}
