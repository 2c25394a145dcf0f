package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"capper/internal/objects"
	"capper/internal/segments"
)

// Publisher stores generations (published versions) of segments at a location and makes them live.
type Publisher struct {
	Location    objects.Location
	ToolVersion string
	Clock       func() time.Time // nil is time.Now
	// The Publisher calls the function Uploaded after each stored object, from several goroutines. If Uploaded is nil,
	// there is no call.
	Uploaded func(key string, sizeBytes int64)

	mu sync.Mutex
	// The map "stored" contains the keys of the objects that this Publisher has stored. A repeated publish checks that
	// these objects exist, but does not store them again.
	stored map[string]bool
}

func (p *Publisher) now() time.Time {
	if p.Clock == nil {
		return time.Now()
	}
	return p.Clock()
}

// Published describes the result of a publish.
type Published struct {
	Manifest *segments.Manifest
	// Unchanged is true if the same segments and sets were already live, so that no new generation was stored.
	Unchanged bool
	// UploadedBytes is the total size of the bitmaps and id files that the publish stored; the manifest is excluded.
	UploadedBytes int64
	Uploaded      []string // keys of the objects in UploadedBytes
}

// Publish stores the candidate (built but unpublished generation) and makes it live, provided that the generation in
// the argument "base" is still live. Publish stores the bitmaps first, then the manifest, then the pointer
// current.json, so that a crash at any point leaves the live generation intact. If the candidate's content is already
// live, Publish only updates the time in checked.json. If a later as_of (time up to which a set reflects API calls) is
// the only difference from the live generation, the candidate may still be new content. This candidate is new content
// if the operator stated the as_of, or if the as_of increases by at least asOfStep. If the as_of is earlier than in the
// live generation, the candidate is new content only if the operator stated the as_of and gave a reason. If another
// process has published since the read of base, the error is objects.ErrLostRace. If publishing is on hold, the error
// is a HoldError, unless the candidate only adds users to sets that only grow. If a rollback replaced the content
// earlier and the argument "reason" is empty, the error is a WithdrawnError. If "reason" is not empty, Publish removes
// the content from the list of rolled-back content.
func (p *Publisher) Publish(ctx context.Context, c *Candidate, base *LiveState, reason string) (*Published, error) {
	c.Inherit(base.manifest)
	list, sets := c.manifestEntries()
	c.keepLaterAsOf(c.contentOf(list, sets), base.manifest, reason != "")
	if err := c.checkIDs(base); err != nil {
		return nil, err
	}
	if live := base.manifest; base.Generation != nil && c.sameIDs(live) &&
		sameSegments(live.Segments, list) && sameSets(live.Sets, sets) && !c.otherAsOf(sets, live.Sets) {
		done := &Published{Manifest: live, Unchanged: true}
		if c.Partial {
			return done, nil
		}
		return done, p.noteChecked(ctx, base.Name)
	}
	m, err := p.manifest(base, reason, c, list, sets)
	if err != nil {
		return nil, err
	}
	if err := p.keepIDs(ctx, c.Scheme, base); err != nil {
		return nil, err
	}
	done := &Published{Manifest: m}
	grew := sync.OnceValue(func() bool { return c.onlyGrew(base) })
	err = p.goLive(ctx, p.upload(c.generation(m), base, done), base, func(c *controls) error {
		if c.Hold != nil && !grew() {
			return &HoldError{*c.Hold}
		}
		if refusals := c.Refusals(m, base); reason == "" && len(refusals) > 0 {
			return refusals[0]
		}
		return nil
	})
	if err == nil && reason != "" {
		err = changeControls(ctx, p.Location, func(c *controls) { c.lift(m) })
	}
	if err == nil && !c.Partial {
		err = p.noteChecked(ctx, m.Generation)
	}
	return done, err
}

// The method "manifest" returns the manifest of the generation (published version) that will follow the generation in
// the argument "base". The new manifest repeats the approved changes from the manifest of base, for services that still
// use an older generation.
func (p *Publisher) manifest(base *LiveState, reason string, c *Candidate, list []segments.Segment,
	sets []segments.Set) (*segments.Manifest, error) {
	at := p.now().UTC().Truncate(time.Millisecond)
	capAsOf(sets, at)
	m, err := segments.NewManifest(at, p.ToolVersion, reason, list, sets...)
	if err == nil && c.Dictionary != nil {
		m, err = m.Numbered(c.IDs())
	}
	if err != nil {
		return nil, err
	}
	accepted := slices.Clone(c.Accepted)
	for i := range accepted {
		accepted[i].At = m.CreatedAt
	}
	if base.manifest != nil {
		var lost map[string]bool
		if reason != "" {
			lost = c.lostUsers(base)
		}
		accepted = chained(base.manifest, m, accepted, lost)
	}
	if len(accepted) == 0 {
		return m, nil
	}
	return m.WithAccepted(accepted)
}

func sameSegments(a, b []segments.Segment) bool {
	return slices.EqualFunc(a, b, func(a, b segments.Segment) bool { return a.Name == b.Name && a.SHA256 == b.SHA256 })
}

func sameSets(a, b []segments.Set) bool {
	return slices.EqualFunc(a, b, func(a, b segments.Set) bool {
		return a.Name == b.Name && a.SHA256 == b.SHA256 && a.OnlyGrows == b.OnlyGrows && a.MaxLoss == b.MaxLoss
	})
}

// goLive stores the missing objects of the generation (published version) and makes it live, provided that the
// generation in the argument "base" is still live. goLive first waits until a running Collector (command gc) has
// stopped removing objects. If a Collector or a hold (stop of all publishing) starts later, the tag of current.json
// changes, and goLive checks everything again. The function in the argument "may" returns an error if controls.json
// forbids to make the content live.
func (p *Publisher) goLive(ctx context.Context, up *upload, base *LiveState, may func(*controls) error) error {
	for tag := base.tag; ; {
		if err := p.admit(ctx, base, may); err != nil {
			return err
		}
		if err := up.put(ctx); err != nil {
			return err
		}
		_, err := swap(ctx, p.Location, segments.CurrentKey, segments.PointerTo(up.g.Manifest).Encode(), tag)
		if err == nil {
			break
		}
		if !errors.Is(err, objects.ErrLostRace) {
			return err
		}
		if tag = p.fenced(ctx, base); tag == "" {
			return err
		}
	}
	// An older version of the command gc ignores the lease. An older gc may have removed objects that were old and
	// unused until now.
	if err := up.put(ctx); err != nil {
		return fmt.Errorf("generation (published version) %s is live, but the final check found a fault: %w",
			up.g.Manifest.Generation, err)
	}
	return p.confirm(ctx, up.g)
}

// The method "confirm" reads current.json back after a publish, to check that the generation (published version) is
// live. If current.json already names a later generation, "confirm" returns no error, provided that all later publishes
// were amends (publishes of some sets).
func (p *Publisher) confirm(ctx context.Context, g *segments.Generation) error {
	m := g.Manifest
	now, _, err := segments.ReadPointer(ctx, p.Location, "")
	switch {
	case err != nil:
		return fmt.Errorf("generation (published version) %s was published, but %s could not be read afterwards: %w",
			m.Generation, segments.CurrentKey, err)
	case now != segments.PointerTo(m):
		if next, err := now.ReadManifest(ctx, p.Location); err == nil {
			if amends, err := amendsBetween(ctx, p.Location, m, next, g.Original()); err == nil && amends {
				return nil
			}
		}
		return fmt.Errorf("%w: generation (published version) %s is now live instead of generation %s",
			objects.ErrLostRace, now.Generation, m.Generation)
	}
	return nil
}

// The method "admit" checks that controls.json allows the publish. The method "admit" also waits until a running
// Collector (command gc) has stopped removing objects.
func (p *Publisher) admit(ctx context.Context, base *LiveState, may func(*controls) error) error {
	controls, err := base.Controls(ctx, p.Location)
	if err == nil {
		err = may(controls)
	}
	if err != nil {
		return err
	}
	return p.stopCollector(ctx)
}

// stopCollector makes a running Collector (command gc) stop removing objects, and waits until it has stopped.
func (p *Publisher) stopCollector(ctx context.Context) error {
	asked := false
	_, err := awaitLease(ctx, p.Location, func(leaseDocument) error {
		if asked {
			return nil
		}
		asked = true
		if _, err := fence(ctx, p.Location); !errors.Is(err, segments.ErrNothingLive) {
			return err
		}
		return nil
	})
	return err
}

// The method "fenced" returns the present tag of current.json if this pointer still names the generation (published
// version) in the argument "base". If the pointer still names this generation, only a fence (rewrite by a Collector) or
// a hold (stop of all publishing) has changed the tag. If the pointer names another generation, "fenced" returns "".
func (p *Publisher) fenced(ctx context.Context, base *LiveState) (tag string) {
	now, tag, err := segments.ReadPointer(ctx, p.Location, "")
	if err != nil || base.Name == "" || now != base.live {
		return ""
	}
	return tag
}

// RollbackReason begins the field Reason in the manifest of a generation (published version) that a rollback created.
const RollbackReason = segments.RollbackReason

// Rollback makes an earlier generation (published version) live again, provided that the generation in the argument
// "base" is still live. The argument "earlier" of Rollback must come from ReadGeneration, which checks all bytes of the
// generation. Rollback records the content of base as rolled back, together with each segment and set of base that
// differs in the earlier generation. Content that is recorded as rolled back does not go live again without approval.
// Rollback also works while publishing is on hold. If the earlier generation is already live and complete, the field
// Unchanged of the result is true.
func (p *Publisher) Rollback(ctx context.Context, earlier *segments.Generation, base *LiveState) (*Published, error) {
	if base.Fault == nil && base.Name == earlier.Manifest.Generation {
		return &Published{Manifest: earlier.Manifest, Unchanged: true}, nil
	}
	return p.rollback(ctx, earlier, base)
}

func (p *Publisher) rollback(ctx context.Context, earlier *segments.Generation, base *LiveState) (*Published, error) {
	done := &Published{Manifest: earlier.Manifest}
	if err := p.withdraw(ctx, base, earlier.Manifest); err != nil {
		return nil, err
	}
	return done, p.goLive(ctx, p.upload(earlier, base, done), base, func(*controls) error { return nil })
}

// noteChecked writes the time of the last complete build to checked.json, from which services read it.
func (p *Publisher) noteChecked(ctx context.Context, generation string) error {
	c := segments.Checked{FormatVersion: segments.FormatVersion, Generation: generation,
		CheckedAt: p.now().UTC().Truncate(time.Second)}
	raw, err := json.Marshal(c)
	if err == nil {
		err = p.Location.Overwrite(ctx, segments.CheckedKey, append(raw, '\n'))
	}
	if err != nil {
		return fmt.Errorf(
			"generation (published version) %s is live, but the time of its final check could not be recorded: %w",
			generation, err)
	}
	return nil
}
