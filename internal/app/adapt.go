package app

import (
	"context"
	"slices"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/campaign"
	"capper/internal/capping"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/server"
)

// newServer builds the API over what has been started.
func (s *Service) newServer(context.Context) (err error) {
	cfg := s.config.Server
	s.capper = capping.New(s.store, func() capping.Segments { return generation{s.segments.Current()} }, s.config.Policy, s.clock)
	s.warnUnmatched(s.segments.Current())
	s.reportMissing(nil, s.segments.Current())
	s.registry.MustRegister(s.missingSets())
	s.pacers = pacing.New(s.permits, s.config.Pacers)
	if err := s.countAnswers(); err != nil {
		return err
	}
	limiter, _ := capping.As[capping.RateLimiter](s.store) // none: each process keeps its own
	s.api, err = server.New(server.Config{
		Capper: s.capper, Pacers: s.pacers, Journal: s.journal, Audit: s.auditOfMessages(), Records: s.records(), Campaigns: s.answers, Generations: s.segments.Pin, History: s.history, Audiences: func() *audience.Named { return s.watcher.Current().Audiences },
		Segments: s.segmentsStatus, ConfigStatus: s.configStatus,
		Logger: s.logger, Registerer: s.registry, Gatherer: s.registry,
		Tracer: s.spans(), TraceMessages: s.config.Tracing.MessageIDs,
		Bounds: cfg.Bounds, Access: cfg.Access, Limiter: limiter, AdminSeparate: cfg.AdminListen != "",
		HostNames: cfg.HostNames, Clock: s.clock,
	})
	return err
}

// countAnswers makes the counter of what is answered, over a store that keeps counts.
func (s *Service) countAnswers() (err error) {
	if store, ok := capping.As[campaign.Store](s.store); ok {
		s.answers, err = campaign.NewCounter(store, s.logger, s.registry)
	}
	return err
}

// flushAnswers has what is answered counted until ctx ends.
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
		Problems: append(slices.Clone(s.watcher.Current().Warnings), s.problems(s.segments.Current())...),
	}
}

// generation is a generation of segments as the domain asks it.
type generation struct{ *segments.Snapshot }

// Set is a set by its name.
func (g generation) Set(name string) (capping.Set, bool) {
	set := g.Snapshot.Set(name)
	return set, set != nil
}
