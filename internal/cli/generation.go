package cli

import (
	"context"
	"errors"
	"fmt"

	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/terminal"
)

// generations returns a function that reads generations from a source. An empty source means the source in the
// configuration.
func (p *Place) generations(ctx context.Context, source string) (func(context.Context, string) (capping.Segments,
	error), error) {
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
		if g.Manifest.IDs != nil { // bitmaps hold numbers, and an audit holds ids
			return nil, terminal.Misuse(fmt.Errorf("generation %s has ids of the kind %s, but the audit has dense ids",
				g.Manifest.Generation, g.Manifest.IDs.Kind))
		}
		return generation{Snapshot: g.Snapshot()}, nil
	}, nil
}

// generation adapts a snapshot of segments to the interface of the domain.
type generation struct {
	*segments.Snapshot
}

// Set returns a set by its name.
func (g generation) Set(name string) (capping.Set, bool) {
	set := g.Snapshot.Set(name)
	return capping.SetByNumber{Members: set}, set != nil
}
