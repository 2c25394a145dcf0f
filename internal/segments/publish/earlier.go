package publish

import (
	"context"
	"fmt"
	"slices"
	"time"

	"capper/internal/objects"
	"capper/internal/parallel"
	"capper/internal/segments"
)

// The constant "week" is the time for which the guard limits the total change of a segment or set.
const week = 7 * 24 * time.Hour

// The struct "earlier" contains the generation (published version) of about a week ago. The guard compares a candidate
// (built but unpublished generation) with the generation of about a week ago.
type earlier struct {
	Generation *segments.Generation // nil if there is none
	// Skipped lists generations that findEarlier skipped because they are unreadable, with the reasons.
	Skipped []string
}

// findEarlier returns the generation (published version) that was live a week before the time "now". The result of
// findEarlier is the newest generation that is at least a week old or, if all generations are younger, the oldest one.
// findEarlier considers generations that are older than the live one and were not rolled back. findEarlier chooses no
// generation from before the latest forced publish, because an operator has checked each forced publish. If the chosen
// generation is unreadable, findEarlier chooses the next younger one. If the argument "base" has only some sets of the
// live generation, findEarlier also reads only these sets.
func findEarlier(ctx context.Context, at objects.Source, controls *controls, base *LiveState, live string,
	now time.Time) (*earlier, error) {
	if !segments.IsGeneration(live) {
		return &earlier{}, nil
	}
	names, err := namesBefore(ctx, at, live)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return controls.withdrawal(name, nil) != nil })
	weekAgo := segments.TimeName(now.Add(-week))
	old := func(name string) bool { return name[:len(weekAgo)] <= weekAgo }
	if old(live) {
		return &earlier{}, nil
	}
	var end int
	var manifests []*segments.Manifest
	var faults []error
	for same := true; same; { // repeat until no generation has rolled-back content
		// keep the generations within the week, and one older generation
		if end = slices.IndexFunc(names, old) + 1; end == 0 {
			end = len(names)
		}
		manifests, faults = readManifests(ctx, at, append([]string{live}, names[:end]...))
		withdrawn := map[string]bool{}
		for i, m := range manifests[1:] {
			withdrawn[names[i]] = m != nil && controls.withdrawal(names[i], m) != nil
		}
		before := len(names)
		names = slices.DeleteFunc(names, func(name string) bool { return withdrawn[name] })
		same = len(names) < before
	}
	if i := slices.IndexFunc(manifests, func(m *segments.Manifest) bool { return m != nil && m.Reason != "" }); i >= 0 {
		end = min(end, i)
	}
	found := &earlier{}
	for i := end - 1; i >= 0 && found.Generation == nil && ctx.Err() == nil; i-- {
		err := faults[i+1]
		if err == nil {
			found.Generation, err = base.read(ctx, at, manifests[i+1], base.Generation)
		}
		if err != nil {
			found.Skipped = append(found.Skipped, fmt.Sprintf("%s: %v", names[i], err))
		}
	}
	return found, ctx.Err()
}

// namesBefore returns the names of the generations (published versions) that are older than the given one, newest
// first. namesBefore lists the objects of the location, but reads no objects.
func namesBefore(ctx context.Context, at objects.Source, one string) ([]string, error) {
	list, err := at.List(ctx, segments.GenerationsPrefix)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, o := range list {
		if name, ok := segments.GenerationOf(o.Key); ok && name < one {
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	return names, nil
}

// readManifests reads the manifests of several generations (published versions) in parallel.
func readManifests(ctx context.Context, src objects.Source, names []string) ([]*segments.Manifest, []error) {
	manifests, faults := make([]*segments.Manifest, len(names)), make([]error, len(names))
	parallel.AtMost(parallelRequests, len(names), func(i int) {
		manifests[i], faults[i] = segments.ReadManifest(ctx, src, names[i])
	})
	return manifests, faults
}
