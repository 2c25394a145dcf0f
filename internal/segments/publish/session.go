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

// Session represents one publish, from the first check for a hold until current.json is replaced. A Session caches
// controls.json and downloads the object again only if its tag has changed, so its content is always current. The zero
// Session has read no object yet. A Session is safe for concurrent use.
type Session struct {
	// Numbering is the dictionary of the candidate, for ids that are not dense. The Session then converts the bitmaps
	// of earlier generations to the user numbers of this dictionary. The caller must set Numbering before the first
	// read.
	Numbering *segments.Dictionary

	known atomic.Pointer[taggedControls]      // nil: not read yet
	last  atomic.Pointer[segments.Generation] // the live generation as last read; nil: not read yet
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

// Hold checks, before a build reads its input files, whether publishing is on hold. While publishing is on hold, one of
// the two results of Session.Hold is a HoldError. If the live generation has a set that only grows, the HoldError is
// the result "held" and the build goes on, because such sets may still be published. If no live set only grows, the
// HoldError is the result "err", so that the build ends.
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

// ReadLive reads the live generation. If a publish uses the returned LiveState as its base, it reads controls.json
// through this Session. ReadLive does not read bitmaps again that an earlier call has read.
func (s *Session) ReadLive(ctx context.Context, at objects.Source) (*LiveState, error) {
	return s.readLive(ctx, at, nil)
}

// ReadForAmend reads the live generation for the amend (publish of some sets) with the candidate c. ReadForAmend reads
// only the bitmaps of the sets that the amend replaces, and for ids that are not dense also the dictionary. If the live
// dictionary lacks ids of c, the amend must give all users other numbers, so ReadForAmend then reads all bitmaps.
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
