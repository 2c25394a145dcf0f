package publish

import (
	"context"
	"errors"

	"capper/internal/objects"
	"capper/internal/segments"
)

// LiveState is what is live at one moment: the base of a comparison and of the
// compare-and-swap that follows it. The zero value: nothing has been published.
type LiveState struct {
	Generation *segments.Generation // nil when nothing is published or Fault is set
	Name       string
	// Fault is why the live generation cannot be read; a publish must then be forced.
	Fault error

	manifest *segments.Manifest // that of the live generation, also when a bitmap is at Fault
	live     segments.Pointer
	tag      string
	session  *Session // nil: none, and controls.json is read in full each time
}

// ReadLiveState reads the live generation, all of it. What is damaged there is
// a Fault of the state; the error is for a location that does not answer.
func ReadLiveState(ctx context.Context, src objects.Source) (*LiveState, error) {
	for {
		state, err := readLiveState(ctx, src)
		if err != nil || state.Fault == nil {
			return state, err
		}
		// What was replaced while it was being read may have been removed meanwhile.
		if _, _, err := src.ReadTagged(ctx, segments.CurrentKey, state.tag); errors.Is(err, objects.ErrNotModified) {
			return state, nil
		} else if err != nil && !errors.Is(err, objects.ErrNotFound) {
			return nil, err
		}
	}
}

func readLiveState(ctx context.Context, src objects.Source) (*LiveState, error) {
	body, tag, err := src.ReadTagged(ctx, segments.CurrentKey, "")
	if errors.Is(err, objects.ErrNotFound) {
		return &LiveState{}, nil
	}
	if err != nil {
		return nil, err
	}
	state := &LiveState{tag: tag}
	if state.live, err = segments.ParsePointer(body); err != nil {
		state.Fault = err
		return state, ctx.Err()
	}
	state.Name = state.live.Generation
	if state.manifest, err = state.live.ReadManifest(ctx, src); err != nil {
		state.Fault = err
	} else {
		state.Generation, state.Fault = state.manifest.ReadBitmaps(ctx, src)
	}
	return state, ctx.Err()
}
