package server

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"capper/client/api"
	"capper/internal/audit/archive"
	"capper/internal/objects"
	"capper/internal/server/wire"
	"capper/internal/whatif"
)

// A Replay function decides again, under another policy, about the recorded calls in the audit of all instances; see
// whatif.Replay. A Replay function returns as soon as its context ends. If a segments generation (published version)
// does not exist, the error of a Replay function wraps objects.ErrNotFound.
type Replay func(ctx context.Context, cfg whatif.Config) (*whatif.Result, error)

// These constants limit the replays of POST /v1/whatif, which decide recorded calls again under other limits.
const (
	replayTime      = 2          // the time limit, as a multiple of the usual time limit of a call
	replayDecisions = 50_000_000 // the maximum number of decisions, including decisions before the counted calls
	replayBytes     = 512 << 20  // the maximum memory in bytes for histories of users
	replaysAtOnce   = 2          // the maximum number of simultaneous replays
	replayPrice     = 100_000    // the number of users that a replay takes from the rate limit of the API key
)

// whatIf serves POST /v1/whatif, which decides recorded calls again under other limits. If the caller disconnects,
// the server stops the replay.
func (s *Server) whatIf(c *call) error {
	body, err := s.smallBodies.Read(c.w, c.r, c.holder)
	if err != nil {
		return err
	}
	defer body.Close()
	r, err := wire.DecodeWhatIf(body.Data)
	if err != nil {
		return err
	}
	policy := s.capper.Policy()
	cfg, err := r.Config(policy, s.capper.Segments().Names(), s.clock())
	switch {
	case err != nil:
		return err
	case s.replay == nil:
		return noAudit()
	}
	leave, err := s.replays.enter(cmp.Or(c.Key, c.holder))
	if err != nil {
		return err
	}
	defer leave()
	if err := s.charge(c, "limits", replayPrice); err != nil {
		return err
	}
	cfg.MaxDecisions, cfg.MaxBytes = replayDecisions, replayBytes
	ctx, cancel := context.WithTimeout(c.ctx, replayTime*s.bounds.CallTimeout)
	defer cancel()
	result, err := s.replay(ctx, cfg)
	if err != nil {
		return replayFailure(ctx, err)
	}
	answer := r.Answer(result, policy.Version, c.Namespace)
	s.addTitles(ctx, c.Namespace, titlesOfCampaigns(answer.Campaigns))
	return writeJSON(c.w, answer)
}

// replayFailure converts an error of a what-if replay to a failure for the caller.
func replayFailure(ctx context.Context, err error) error {
	const remedy = "choose a later since, or use the command capper whatif, which has no such limit"
	var bound *whatif.BoundError
	switch {
	case errors.As(err, &bound):
		return wire.FieldFailure(api.CodeTooLarge, "since", "the recorded calls since this time have more than %d "+
			"decisions, or their replay needs more than %d MiB: "+remedy, replayDecisions, replayBytes>>20)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return wire.FieldFailure(api.CodeTooLarge, "since", "the replay of the recorded calls since this time took "+
			"too long: "+
			remedy)
	case errors.Is(err, objects.ErrNotFound) && !errors.Is(err, archive.ErrNoPolicy):
		return wire.FieldFailure(api.CodeGone, "generation", "%s: name a generation that exists; GET /v1/generations "+
			"lists all", err)
	}
	return unreadable(err)
}

// The type "turns" lets each API key run one what-if replay at a time, and lets at most replaysAtOnce replays run in
// total. The zero value is ready for use. A turns is safe for concurrent use.
type turns struct {
	mu   sync.Mutex
	keys map[string]bool
}

// The method enter lets a call with the API key begin a what-if replay, or returns an error. When the replay has
// finished, the caller must call the function leave that enter() returned.
func (t *turns) enter(key string) (leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.keys[key]:
		return nil, wire.Overloaded("another what-if of this key is not finished, and a key has one at a time")
	case len(t.keys) >= replaysAtOnce:
		return nil, wire.Overloaded("other keys' what-ifs are not finished")
	case t.keys == nil:
		t.keys = map[string]bool{}
	}
	t.keys[key] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.keys, key)
	}, nil
}
