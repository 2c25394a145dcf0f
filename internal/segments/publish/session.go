package publish

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"capper/internal/objects"
	"capper/internal/segments"
)

// Session is one publish, from the check before its inputs are read until its swap. It reads controls.json once. When
// the document matters again, the session asks the location for it only if its tag has changed, so that every answer
// is as new as a full read. The zero value has read nothing yet. It is safe for concurrent use.
type Session struct {
	known atomic.Pointer[taggedControls] // nil: not read yet
}

// taggedControls is controls.json as it was when it had the tag. It is not changed.
type taggedControls struct {
	controls *controls
	tag      string
}

// Controls returns what must not go live at a location, as it is there now.
func (s *Session) Controls(ctx context.Context, at objects.Source) (*controls, error) {
	known := s.known.Load()
	if known == nil {
		known = &taggedControls{}
	}
	c, tag, err := readControls(ctx, at, known.tag)
	if errors.Is(err, objects.ErrNotModified) {
		return known.controls, nil
	}
	if err != nil {
		return nil, err
	}
	s.known.Store(&taggedControls{c, tag})
	return c, nil
}

// Hold looks for a hold before the inputs of a build are read. While publishing is on hold, one of the two is a
// HoldError: held when something live only grows, since sets that grew may still go live, and err otherwise.
func (s *Session) Hold(ctx context.Context, at objects.Source) (held, err error) {
	controls, err := s.Controls(ctx, at)
	if err != nil || controls.Hold == nil {
		return nil, err
	}
	held = &HoldError{Hold: *controls.Hold}
	live, err := segments.ReadLiveManifest(ctx, at)
	if err != nil || !slices.ContainsFunc(live.Sets, func(s segments.Set) bool { return s.OnlyGrows }) {
		return nil, held
	}
	return held, nil
}

// ReadLive reads what is live. A publish over it asks this session for the controls.
func (s *Session) ReadLive(ctx context.Context, at objects.Source) (*LiveState, error) {
	state, err := ReadLiveState(ctx, at)
	if state != nil {
		state.session = s
	}
	return state, err
}

// Controls returns what must not go live over the state, as it is at the location now.
func (s *LiveState) Controls(ctx context.Context, at objects.Source) (*controls, error) {
	if s.session == nil {
		return ReadControls(ctx, at)
	}
	return s.session.Controls(ctx, at)
}
