package segments

import (
	"context"
	"maps"
	"slices"

	"capper/internal/bitmap"
)

// mostReplayed and mostReads limit how many earlier generations a service reads when it starts without a cache.
const (
	// mostReplayed is the maximum number of earlier generations whose manifests are read.
	mostReplayed = 64
	// mostReads is the maximum number of earlier generations whose bitmaps are read.
	mostReads = 16
)

// replay returns those earlier generations that a service without a restart would have used, newest first. replay
// leaves out generations that lost too many users themselves, because a later generation must not be compared with
// them.
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

// takes reports whether a service would accept the generation "next" if it used the generation "was".
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

// orReadBy returns a function that returns a bitmap: from the memory of the generation g, or else by a call of read.
func (g *Generation) orReadBy(read readFunc) readFunc {
	return func(ctx context.Context, s *Segment) (*bitmap.Bitmap, error) {
		if b := g.bitmapWith(s.SHA256); b != nil {
			return b, nil
		}
		return read(ctx, s)
	}
}

// shrank reports whether a set lost too many users without an approved change, as far as the user counts in
// the manifests prove it.
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

// stepTo returns the limits on lost users that replay must check from one generation to the next. stepTo leaves out
// sets that are equal, and sets for which the publisher has already checked the loss. stepTo includes time zones only
// if their user counts show a loss. If the number of users who gained a time zone equals the number of users who lost
// one, the user counts of the time zone sets do not show the loss. A comparison of the users of all time zone sets
// would show this loss, but is too expensive for each step.
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

// vouched reports whether the publisher has already ensured that at most the allowed number of users left
// a set between two consecutive generations. A publisher ensures this limit only if the set has OnlyGrows and the
// publish was not forced.
func vouched(was, next *former, before, after *Set, mayLose float64) bool {
	return next.follows == was.manifest.Generation && next.manifest.Reason == "" &&
		before.OnlyGrows && after.OnlyGrows && after.MaxLoss <= mayLose
}

// lessZones reports whether users lost their time zone, as far as the user counts of the time zone sets show it.
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
