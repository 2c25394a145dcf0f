package segments

import (
	"context"
	"maps"
	"slices"

	"capper/internal/bitmap"
)

// mostReplayed and mostReads limit the number of earlier generations (published versions) that a starting service
// without a cache reads.
const (
	// mostReplayed is the maximum number of earlier generations whose manifests a starting service reads.
	mostReplayed = 64
	// mostReads is the maximum number of earlier generations whose bitmaps a starting service reads.
	mostReads = 16
)

// The method "replay" returns the earlier generations (published versions) that a service without a restart would have
// used, newest first. The result of the method "replay" has no generation that itself lost too many users, because such
// a generation is unsuitable for a comparison.
func (r *Refresher) replay(ctx context.Context, blank *comparison, earlier []*former) (used []*former) {
	reads := 0
	for i, f := range earlier {
		if i+1 == len(earlier) || reads == mostReads {
			earlier = earlier[:i+1]
			break
		}
		if step := stepTo(&blank.guarded, earlier[i+1], f); !step.isEmpty() {
			reads++
		}
	}
	for _, f := range slices.Backward(earlier) {
		if len(used) == 0 || r.takes(ctx, blank, used[len(used)-1], f) {
			used = append(used, f)
		}
	}
	slices.Reverse(used)
	return used
}

// The method "takes" reports whether a service that uses the generation "was" (published version) would accept the
// generation "next".
func (r *Refresher) takes(ctx context.Context, blank *comparison, was, next *former) bool {
	c := &comparison{was: was, guarded: stepTo(&blank.guarded, was, next), object: r.object, cores: blank.cores}
	switch {
	case c.guarded.isEmpty():
		return true
	case c.guarded.shrank(was.manifest, next.manifest):
		return false
	}
	var err error
	if c.next, err = readGuarded(ctx, next.manifest, &c.guarded, next.read); err != nil {
		return false
	}
	if next.manifest.IDs != nil {
		if c.next.Dictionary, err = next.dictionary(ctx); err != nil {
			return false
		}
	}
	if c.run(ctx) != nil {
		return false
	}
	was.read, next.read = blank.next.orRead(r.cfg.Source), c.next.orReadBy(next.read)
	return true
}

// orReadBy returns a function that gets a bitmap from the generation g (published version) in memory, or else by a call
// of the argument "read".
func (g *Generation) orReadBy(read readFunc) readFunc {
	return func(ctx context.Context, s *Segment) (*bitmap.Bitmap, error) {
		if b := g.bitmapWith(s.SHA256); b != nil {
			return b, nil
		}
		return read(ctx, s)
	}
}

// The method "shrank" reports whether the user counts in the manifests prove that a set lost too many users without an
// approved change.
func (g *Guarded) shrank(was, next *Manifest) bool {
	for name, mayLose := range g.MayLose {
		before, after := was.set(name), next.set(name)
		accepted := slices.ContainsFunc(next.Accepted, func(a Accepted) bool { return a.Set == name })
		if !accepted && after.Cardinality+Allowed(before.Cardinality, mayLose) < before.Cardinality {
			return true
		}
	}
	return false
}

// stepTo returns the limits on lost users that the method "replay" must check from one generation (published version)
// to the next. stepTo omits unchanged sets, and sets whose loss the publisher has already checked. stepTo includes the
// time zones only if the user counts of the time zone sets show a loss. The user counts do not show a loss of time
// zones if other users gained time zones. A comparison of all users would also find such a loss, but is too expensive
// for each step.
func stepTo(guarded *Guarded, was, next *former) (step Guarded) {
	step.MayLose = maps.Clone(guarded.MayLose)
	maps.DeleteFunc(step.MayLose, func(name string, mayLose float64) bool {
		before, after := was.manifest.set(name), next.manifest.set(name)
		return mayLose == 100 || before == nil || after == nil ||
			was.manifest.Users(&before.Segment) == next.manifest.Users(&after.Segment) ||
			vouched(was, next, before, after, mayLose)
	})
	step.Zones = guarded.Zones && lessZones(was.manifest, next.manifest)
	return step
}

// The function "vouched" reports whether the publisher has already checked the number of users who left a set between
// two consecutive generations (published versions). A publisher checks the number of leaving users if the set only
// grows, except in a forced publish.
func vouched(was, next *former, before, after *Set, mayLose float64) bool {
	return next.follows == was.manifest.Generation && next.manifest.Reason == "" &&
		before.OnlyGrows && after.OnlyGrows && after.MaxLoss <= mayLose
}

// lessZones reports whether the user counts of the time zone sets show that too many users lost their time zone.
func lessZones(was, next *Manifest) bool {
	var before, after uint64
	for _, zone := range next.zones() {
		after += zone.Cardinality
	}
	for _, zone := range was.zones() {
		before += zone.Cardinality
		is := next.set(zone.Name)
		if is == nil || is.Cardinality < zone.Cardinality-Allowed(zone.Cardinality, zoneMayLose) {
			return true
		}
	}
	return after < before-Allowed(before, zonesMayLose)
}
