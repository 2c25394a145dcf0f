package publish

import (
	"context"
	"errors"

	"capper/internal/objects"
	"capper/internal/segments"
)

// A LiveState is the generation that was live when a publisher read the location. A publish compares its candidate
// (built but unpublished generation) with the LiveState. The publish replaces the live generation by compare-and-swap,
// if it is still the generation in the LiveState. If the location has no live generation, the LiveState is zero.
type LiveState struct {
	Generation *segments.Generation // nil if nothing is published or Fault is not nil
	Name       string
	// If reading the live generation failed, Fault is the reason. If the live generation is damaged, a publish needs
	// --force.
	Fault error

	// If the field Generation has only some sets of the live generation, the function "part" selects these sets.
	// Otherwise, "part" is nil.
	part func(set string) bool

	// The field "numbering" is the dictionary for the user numbers in the bitmaps of the field Generation. If
	// "numbering" is nil, the bitmaps have the user numbers of the generation's own dictionary.
	numbering *segments.Dictionary

	// If the read is for an amend (publish of some sets) with new ids, the field "whole" is the complete live
	// generation with the original user numbers. Otherwise, "whole" is nil.
	whole *segments.Generation

	manifest *segments.Manifest // manifest of the live generation; set even if a bitmap is damaged
	live     segments.Pointer
	tag      string
	session  *Session // nil: each call of Controls reads controls.json in full
}

// ReadLiveState reads all segments and sets of the live generation (published version that current.json names). If the
// live generation is damaged, the field Fault of the LiveState describes the damage. If the location does not respond,
// ReadLiveState returns an error.
func ReadLiveState(ctx context.Context, src objects.Source) (*LiveState, error) {
	return readLiveAgain(ctx, src, nil, nil, nil)
}

// readLiveAgain reads the live generation (published version that current.json names). If the argument "part" is not
// nil, readLiveAgain reads only the sets for which the function "part" returns true. readLiveAgain reuses bitmaps that
// the generation "known" has in memory.
func readLiveAgain(ctx context.Context, src objects.Source, part func(set string) bool,
	known *segments.Generation, numbering *segments.Dictionary) (*LiveState, error) {
	for {
		state, err := readLiveState(ctx, src, part, known, numbering)
		if err != nil || state.Fault == nil {
			return state, err
		}
		// The read may have failed because another process replaced the generation and a Collector (command gc) removed
		// its objects.
		if _, _, err := src.ReadTagged(ctx, segments.CurrentKey, state.tag); errors.Is(err, objects.ErrNotModified) {
			return state, nil
		} else if err != nil && !errors.Is(err, objects.ErrNotFound) {
			return nil, err
		}
	}
}

func readLiveState(ctx context.Context, src objects.Source, part func(set string) bool,
	known *segments.Generation, numbering *segments.Dictionary) (*LiveState, error) {
	body, tag, err := src.ReadTagged(ctx, segments.CurrentKey, "")
	if errors.Is(err, objects.ErrNotFound) {
		return &LiveState{}, nil
	}
	if err != nil {
		return nil, err
	}
	state := &LiveState{tag: tag, part: part, numbering: numbering}
	if state.live, err = segments.ParsePointer(body); err != nil {
		state.Fault = err
		return state, ctx.Err()
	}
	state.Name = state.live.Generation
	if state.manifest, err = state.live.ReadManifest(ctx, src); err != nil {
		state.Fault = err
	} else {
		state.Generation, state.Fault = state.read(ctx, src, state.manifest, known)
	}
	return state, ctx.Err()
}

// The method "read" reads the generation (published version) of the given manifest. If the LiveState has only some sets
// of the live generation, the method "read" also reads only these sets.
func (s *LiveState) read(ctx context.Context, src objects.Source, m *segments.Manifest,
	known *segments.Generation) (*segments.Generation, error) {
	if s.part != nil {
		m = m.Only(s.part)
	}
	if s.numbering != nil || s.part != nil {
		return m.ReadForComparison(ctx, src, known, s.numbering)
	}
	return m.ReadBitmapsOver(ctx, src, known)
}
