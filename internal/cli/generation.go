package cli

import (
	"context"
	"errors"
	"fmt"

	"capper/internal/audit"
	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/terminal"
)

// The method "generations" returns a function that reads a segments generation from a location. The returned function
// checks that the generation (published version) and the audit have the same kind and key of user ids. If the argument
// "source" is "", the returned function reads from the location in the configuration.
func (p *Place) generations(ctx context.Context, source string, want audit.IDs) (
	func(context.Context, string) (capping.Segments, error), error) {
	if source == "" && p.configured != nil {
		source = p.configured.Segments.Source
	}
	if source == "" {
		return func(context.Context, string) (capping.Segments, error) {
			return nil, errors.New("the location of the segments is unknown: set --segments or --config")
		}, nil
	}
	at, err := objects.Open(ctx, source, p.s3())
	if err != nil {
		return nil, terminal.Misuse(fmt.Errorf("--segments: %w", err))
	}
	return func(ctx context.Context, name string) (capping.Segments, error) {
		g, err := segments.ReadGeneration(ctx, at, name)
		if err != nil {
			return nil, err
		}
		if have := audit.IDsOf(g.Scheme); have != want {
			return nil, terminal.Misuse(fmt.Errorf(
				"generation (published version) %s has user ids of the kind %s, "+
					"but the audit has user ids of the kind %s",
				g.Manifest.Generation, have, want))
		}
		return generation{Snapshot: g.Snapshot()}, nil
	}, nil
}

// The type generation implements the interface capping.Segments for a published snapshot of segments.
type generation struct {
	*segments.Snapshot
}

// The method Set returns a set by its name.
func (g generation) Set(name string) (capping.Set, bool) {
	set := g.Snapshot.Set(name)
	return capping.SetByNumber{Members: set}, set != nil
}
