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

// Session represents one publish, from the check before the inputs are read until the swap. A Session caches
// controls.json and downloads the document again only if its object tag has changed, so its content is always current.
// The zero value has read nothing yet. A Session is safe for concurrent use.
type Session struct {
	// Numbering is the dictionary of the candidate, for ids that are not dense. Earlier generations are then read by
	// its numbers. The field must be set before the first read.
	Numbering *segments.Dictionary

	known atomic.Pointer[taggedControls]      // nil: not read yet
	last  atomic.Pointer[segments.Generation] // the live generation as last read; nil: not read yet
}

// taggedControls is an immutable version of controls.json with its tag.
type taggedControls struct {
	controls *controls
	tag      string
}

// Controls returns the current content of controls.json at a location.
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

// Hold checks for a hold before a build reads its inputs. While publishing is on hold, one of the two results is a
// HoldError. If the live generation has a set that only grows, the HoldError is the result held, because sets that only
// grow may still be published. In all other cases, the HoldError is the result err.
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

// ReadLive reads the live generation. A publish over the result reads controls.json through this session. ReadLive does
// not read bitmaps again that an earlier call has read.
func (s *Session) ReadLive(ctx context.Context, at objects.Source) (*LiveState, error) {
	return s.readLive(ctx, at, nil)
}

// ReadForAmend reads the live generation for the amend c. ReadForAmend reads only the bitmaps of the amended sets, and
// for ids that are not dense also the dictionary. If the dictionary lacks ids of c, ReadForAmend reads everything,
// because every user then gets another number.
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
