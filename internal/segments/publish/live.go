package publish

import (
	"context"
	"errors"

	"capper/internal/objects"
	"capper/internal/segments"
)

// A LiveState is the generation that was live when a publisher read the location. A publish compares its candidate with
// the LiveState, and then replaces the live generation, if it is still the same, by compare-and-swap. The zero
// LiveState means that the location has no live generation.
type LiveState struct {
	Generation *segments.Generation // nil if nothing is published or Fault is set
	Name       string
	// Fault is the reason why the live generation cannot be read. A publish must then be forced.
	Fault error

	// part selects the sets that Generation has; nil means that it has all segments and sets.
	part func(set string) bool

	// numbering is the dictionary whose user numbers the bitmaps of Generation have; nil means the generation's own
	// dictionary.
	numbering *segments.Dictionary

	// whole is the whole live generation with its own user numbers, for an amend that inserts users; nil otherwise.
	whole *segments.Generation

	manifest *segments.Manifest // manifest of the live generation; set even if a bitmap is damaged
	live     segments.Pointer
	tag      string
	session  *Session // nil: controls.json is read in full each time
}

// ReadLiveState reads all segments and sets of the live generation. If the live generation is damaged, the field Fault
// of the LiveState has the reason. The error is for a location that does not respond.
func ReadLiveState(ctx context.Context, src objects.Source) (*LiveState, error) {
	return readLiveAgain(ctx, src, nil, nil, nil)
}

// readLiveAgain reads the live generation, or only those sets for which the function in the argument "part" returns
// true. readLiveAgain does not read bitmaps again that the generation "known" has in memory.
func readLiveAgain(ctx context.Context, src objects.Source, part func(set string) bool,
	known *segments.Generation, numbering *segments.Dictionary) (*LiveState, error) {
	for {
		state, err := readLiveState(ctx, src, part, known, numbering)
		if err != nil || state.Fault == nil {
			return state, err
		}
		// The read may have failed because a Collector removed objects of a generation that was replaced during the
		// read.
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

// read reads the generation of the given manifest. If the LiveState has only some sets of the live generation, read
// also reads only these sets.
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
