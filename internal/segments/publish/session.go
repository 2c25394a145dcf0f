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

// Session represents one publish, from the check before its inputs are read until its swap. A Session
// caches controls.json and downloads the document again only if its tag has changed, so every answer
// is current. The zero value has read nothing yet. A Session is safe for concurrent use.
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

// Controls returns the current controls of a location.
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

// Hold checks for a hold before the inputs of a build are read. While publishing is on hold, one of
// the results is a HoldError: held if the live generation has a set that only grows, because such sets
// may still be published, and err otherwise.
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

// ReadLive reads the live generation. A publish over the result uses this session to read the
// controls. Bitmaps that an earlier call has read are not read again.
func (s *Session) ReadLive(ctx context.Context, at objects.Source) (*LiveState, error) {
	return s.readLive(ctx, at, nil)
}

// ReadForAmend is ReadLive for the amend c: it reads only the bitmaps of the amended sets, and for ids that are not
// dense the dictionary. If ids of c are not in the dictionary, it reads everything, because every user gets another
// number.
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

// Controls returns the current controls of the location.
func (s *LiveState) Controls(ctx context.Context, at objects.Source) (*controls, error) {
	if s.session == nil {
		return ReadControls(ctx, at)
	}
	return s.session.Controls(ctx, at)
}
