package app

import (
	"context"
	"fmt"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/server"
	"capper/internal/whatif"
)

// The method "replays" returns a function that decides the calls in the audit again under other limits, or nil if no
// audit is configured.
func (s *Service) replays() server.Replay {
	if s.journal == nil {
		return nil
	}
	return func(ctx context.Context, cfg whatif.Config) (*whatif.Result, error) {
		if err := s.journal.Flush(ctx); err != nil {
			return nil, err
		}
		cfg.Widen = capping.Widening(s.store)
		cfg.Generations = func(name string) (capping.Segments, error) { return s.recordedSegments(ctx, name) }
		result, _, err := whatif.Replay(ctx, s.recorded, cfg)
		return result, err
	}
}

// recordedSegments returns the segments of the named generation (published version). recordedSegments returns the
// current generation from memory, and reads every other generation from the location of the segments.
func (s *Service) recordedSegments(ctx context.Context, name string) (capping.Segments, error) {
	if current := s.segments.Current(); current.Generation() == name {
		return publishedSegments{current}, nil
	}
	g, err := segments.ReadGeneration(ctx, s.source, name)
	if err != nil {
		return nil, fmt.Errorf(
			"a recorded call used generation (published version) %s, which cannot be read: %w", name, err)
	}
	if have, want := audit.IDsOf(g.Scheme), s.recorded.IDs(); have != want {
		return nil, fmt.Errorf(
			"generation (published version) %s has user ids of the kind %s, "+
				"but the audit has user ids of the kind %s",
			name, have, want)
	}
	return publishedSegments{g.Snapshot()}, nil
}

// publishedSegments implements capping.Segments for a published snapshot of the segments, without live changes of sets
// by API calls.
type publishedSegments struct{ *segments.Snapshot }

// Set returns a set by its name.
func (p publishedSegments) Set(name string) (capping.Set, bool) {
	set := p.Snapshot.Set(name)
	return capping.SetByNumber{Members: set}, set != nil
}
