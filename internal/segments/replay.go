package segments

import (
	"context"
	"maps"
	"slices"

	"capper/internal/bitmap"
)

// Bounds of the history that a start without a cache replays.
const (
	// mostReplayed is how many earlier generations it looks at: their manifests.
	mostReplayed = 64
	// mostReads is for how many of them it reads bitmaps.
	mostReads = 16
)

// replay returns those of the earlier generations that a service had taken into use that
// ran all the time, in the order given, the newest first. The others lost users themselves:
// what follows must not be compared with them.
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

// takes reports whether a service takes the next generation into use after another one.
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
	if c.run(ctx) != nil {
		return false
	}
	was.read, next.read = blank.next.orRead(r.cfg.Source), c.next.orReadBy(next.read)
	return true
}

// orReadBy returns bitmaps that the generation has as well, and reads others.
func (g *Generation) orReadBy(read readFunc) readFunc {
	return func(ctx context.Context, s *Segment) (*bitmap.Bitmap, error) {
		if b := g.bitmapWith(s.SHA256); b != nil {
			return b, nil
		}
		return read(ctx, s)
	}
}

// shrank reports whether the counts alone show that more users left a list than may, and
// no acceptance speaks of it.
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

// stepTo is what has to be compared from one generation to the next: lists that differ, and
// for which the publisher's own guard does not vouch, and time zones where their counts alone
// show a loss. Users who lose their zone while as many others get one show only to who reads
// the zones of everybody, which is too much for each step.
func stepTo(guarded *Guarded, was, next *former) (step Guarded) {
	step.MayLose = maps.Clone(guarded.MayLose)
	maps.DeleteFunc(step.MayLose, func(name string, mayLose float64) bool {
		before, after := was.manifest.set(name), next.manifest.set(name)
		return mayLose == 100 || before == nil || after == nil || before.SHA256 == after.SHA256 ||
			vouched(was, next, before, after, mayLose)
	})
	step.Zones = guarded.Zones && lessZones(was.manifest, next.manifest)
	return step
}

// vouched reports whether the publisher let so few users leave a set, or accepted it, from
// one generation to the very next: the set only grows, and nobody forced the publish.
func vouched(was, next *former, before, after *Set, mayLose float64) bool {
	return next.follows == was.manifest.Generation && next.manifest.Reason == "" &&
		before.OnlyGrows && after.OnlyGrows && after.MaxLoss <= mayLose
}

// lessZones reports whether the counts of time zones show that users may have lost theirs.
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
