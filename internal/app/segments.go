package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/server"
	"capper/internal/terminal"
)

// loadSegments loads the first segments generation (published version) at the start of the service.
func (s *Service) loadSegments(ctx context.Context) error {
	cfg := s.config.Segments
	source, err := objects.Open(ctx, cfg.Source, cfg.S3)
	if err != nil {
		return named("open segments.source", err)
	}
	s.source, s.history = source, publish.New(source, s.clock)
	refresher := cfg.Refresher
	refresher.Source, refresher.Require, refresher.Guarded, refresher.OnSwap = source, s.require, s.guarded,
		s.reportSwap
	refresher.Overruled, refresher.Changes = s.lists.overruled, s.lists.changes
	refresher.Logger, refresher.Clock, refresher.Registerer = s.logger, s.clock, s.registry
	s.segments = segments.NewRefresher(refresher)
	s.lists.refresher = s.segments
	err = s.segments.Load(ctx)
	if errors.Is(err, objects.ErrNotFound) {
		return terminal.Hinted(err, "segmentbuild build --to "+cfg.Source+
			" --segment NAME=FILE … publishes a first generation")
	}
	if err != nil {
		return err
	}
	return s.checkIDs()
}

// checkIDs returns an error if the first segments generation (published version) has another kind of user ids than the
// configuration. If a later segments generation (published version) has user ids of another kind, the Refresher rejects
// the generation.
func (s *Service) checkIDs() error {
	kind := s.ids().Kind()
	if s.config.IDs != "" && s.config.IDs != kind.String() {
		return fmt.Errorf(
			"ids: the configuration names the kind %s, but the segments at %s have user ids of the kind %s: "+
				"correct the key 'ids' or the key 'segments.source'",
			s.config.IDs, s.config.Segments.Source, kind)
	}
	return nil
}

// The method "ids" returns the scheme (kind and key) of the user ids, which never changes while the service runs.
func (s *Service) ids() *ids.Scheme { return s.segments.Current().IDs() }

// refreshSegments loads newly published generations of the segments until ctx ends.
func (s *Service) refreshSegments(ctx context.Context) { s.segments.Run(ctx) }

// reportSwap logs that the service now uses a new generation of the segments (published version).
func (s *Service) reportSwap(next *segments.Snapshot) {
	current, before := s.segments.Current(), ""
	if current != nil {
		before = current.Generation()
	}
	result := "accepted"
	if len(s.needs().Missing(s.lists.on(next))) > 0 { // possible only if there was no previous generation
		result = "incomplete"
	}
	server.AuditFile(s.logger, "refresh", result, "generation", next.Generation(), "before", before)
	if s.needs().UsesZones() {
		next.Zoneless() // computed now, so that no API call must wait
	}
	s.warnUnmatched(next)
	s.reportMissing(current, next)
}

// warnUnmatched logs segments with configured limits that are not published, and published segments without
// configured limits. Differences between the configured and the published segments are allowed, but probably
// unintended.
func (s *Service) warnUnmatched(current *segments.Snapshot) {
	if s.capper == nil {
		return
	}
	for _, problem := range s.problems(current) {
		s.logger.Warn("segments and limits", "problem", problem)
	}
}

// The method "problems" describes settings of the current policy that are allowed but unusual.
func (s *Service) problems(current *segments.Snapshot) []string {
	policy := s.capper.Policy()
	return slices.Concat(s.missingProblems(policy, current), unmatched(policy, current), zoneless(policy, current),
		s.listProblems(policy),
		unbound(s.watcher.Current().Audiences, current),
		s.shortened.problems(policy, s.clock()), s.unsuppressed.problems(s.watcher.Current().Acknowledged))
}

func unmatched(policy *capping.Policy, current *segments.Snapshot) (list []string) {
	configured, published := policy.Unmatched(current.Names())
	for _, segment := range configured {
		list = append(list, fmt.Sprintf("limits.segments.%s: generation %s does not have this segment", segment,
			current.Generation()))
	}
	for _, segment := range published {
		applies := "limits.default applies"
		if len(policy.Default) == 0 {
			applies = "limits.default has none either, so the segment is uncapped"
		}
		list = append(list, fmt.Sprintf("segment %s has no limits of its own: %s", segment, applies))
	}
	return list
}
