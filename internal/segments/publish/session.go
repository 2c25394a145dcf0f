package publish

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"capper/internal/dictionary"
	"capper/internal/objects"
	"capper/internal/segments"
)

// A Session represents one publish, from the first check for a hold (stop of all publishing) until the replacement of
// current.json. A Session caches controls.json, and downloads controls.json again if the object's tag has changed. The
// zero Session has read no object yet. A Session is safe for concurrent use.
type Session struct {
	// If ids are not dense (32-bit numbers), Numbering is the dictionary of the candidate. The Session converts the
	// bitmaps of earlier generations to the user numbers of this dictionary. The caller must set Numbering before the
	// first read.
	Numbering *segments.Dictionary

	known atomic.Pointer[taggedControls]      // nil: not read yet
	last  atomic.Pointer[segments.Generation] // the live generation at the last read; nil: not read yet
}

// taggedControls is an immutable version of controls.json with its object tag.
type taggedControls struct {
	controls *controls
	tag      string
}

// Controls returns the current content of controls.json: a hold on publishing, and the rolled-back content.
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

// The method Hold checks whether publishing is on hold, before a build reads its input files. During a hold, one of the
// two results of Hold is a HoldError. If the live generation has a set that only grows, Hold returns the HoldError as
// the result "held", and the build continues. The reason is that a build may add users to such a set during a hold. If
// the live generation has no such set, Hold returns the HoldError as the result "err", so that the build ends.
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

// ReadLive reads the live generation (published version that current.json names). If a publish uses the returned
// LiveState as base, the publish reads controls.json through this Session. ReadLive reuses bitmaps that an earlier call
// has read.
func (s *Session) ReadLive(ctx context.Context, at objects.Source) (*LiveState, error) {
	return s.readLive(ctx, at, nil)
}

// ReadForAmend reads the live generation (published version that current.json names) for the amend (publish of some
// sets) with the candidate c. ReadForAmend reads only the bitmaps of the sets that the amend replaces, and the
// dictionary if ids are not dense. If the live dictionary lacks ids of c, the amend must change user numbers, so
// ReadForAmend reads all bitmaps.
func (s *Session) ReadForAmend(ctx context.Context, at objects.Source, c *Candidate) (*LiveState, error) {
	part := c.amendPart()
	state, err := s.readLive(ctx, at, part)
	if err != nil || c.Dictionary == nil || state.Generation == nil || state.Generation.Dictionary == nil ||
		!slices.Contains(c.Dictionary.NumbersIn(state.Generation.Dictionary), dictionary.Unknown) {
		return state, err
	}
	state, err = s.readLive(ctx, at, nil)
	if err != nil || state.Generation == nil {
		return state, err
	}
	state.part, state.whole, state.Generation = part, state.Generation, state.Generation.Only(part)
	return state, nil
}

func (s *Session) readLive(ctx context.Context, at objects.Source, part func(set string) bool) (*LiveState, error) {
	state, err := readLiveAgain(ctx, at, part, s.last.Load(), s.Numbering)
	if state != nil {
		state.session = s
		if state.Generation != nil {
			s.last.Store(state.Generation)
		}
	}
	return state, err
}

// Controls returns the current content of controls.json at the location.
func (s *LiveState) Controls(ctx context.Context, at objects.Source) (*controls, error) {
	if s.session == nil {
		return ReadControls(ctx, at)
	}
	return s.session.Controls(ctx, at)
}
