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

// week is how far back drift is looked for.
const week = 7 * 24 * time.Hour

// earlier is the generation that drift is judged against.
type earlier struct {
	Generation *segments.Generation // nil when there is none to judge against
	// Skipped are generations that would have been it and cannot be read, with the reason.
	Skipped []string
}

// findEarlier finds what was live a week before now, as far as it is still
// there: the newest generation that is at least a week old; where all are
// younger, the oldest. Only generations before the live one count, and none that
// was rolled back from by the controls. A forced generation is where somebody has
// looked: nothing before it is judged again. One that cannot be read gives way
// to the next younger one.
func findEarlier(ctx context.Context, at objects.Source, controls *controls, live string,
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
	for same := true; same; { // as what was rolled back from: all of them go
		// Those within the week, and one more.
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
			found.Generation, err = manifests[i+1].ReadBitmaps(ctx, at)
		}
		if err != nil {
			found.Skipped = append(found.Skipped, fmt.Sprintf("%s: %v", names[i], err))
		}
	}
	return found, ctx.Err()
}

// namesBefore lists the generations before one, the newest first, by their names alone.
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

// readManifests reads manifests, several at once.
func readManifests(ctx context.Context, src objects.Source, names []string) ([]*segments.Manifest, []error) {
	manifests, faults := make([]*segments.Manifest, len(names)), make([]error, len(names))
	parallel.AtMost(parallelRequests, len(names), func(i int) {
		manifests[i], faults[i] = segments.ReadManifest(ctx, src, names[i])
	})
	return manifests, faults
}
