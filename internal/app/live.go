package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/live"
	"capper/internal/segments"
	"capper/internal/server/wire"
)

// The type "lists" combines the segments generation (published version) in use with the live changes of its sets (users
// whom API calls added or removed).
type lists struct {
	store     live.Store // nil: the store does not support live changes
	refresher *segments.Refresher

	declared atomic.Pointer[config.Config]
	inUse    atomic.Pointer[generation]
	mu       sync.Mutex // serializes changes of inUse

	// seen holds the as-of times (up to which a set's build includes all changes) of the generations that were in use
	// in the last period of freeAfter. Only the method "free" uses the field seen.
	seen []sighting
}

// A sighting is a note that the service used a segments generation (published version) at the time "at". The field asOf
// has the as-of time of each set: the time up to which the set's build includes all changes.
type sighting struct {
	at   time.Time
	asOf map[string]capping.Instant
}

// The type generation implements the interface capping.Live. A generation combines a published segments generation with
// the live changes of its sets (by API calls). A generation is immutable. Audience expressions read the published sets
// without live changes (changes by API calls), so that the parts and pages of an audience stay consistent.
type generation struct {
	*segments.Snapshot
	of    *segments.Refresher // knows the age of each set; nil: the ages of sets are unknown
	lists *lists              // nil: the generation has no live changes

	changed  uint64                // live.Lists.Changed when the views were created
	versions []string              // versions of the changes that the views contain
	views    map[string]*live.View // the sets that have live changes
	behind   map[string]capping.Instant
}

var _ capping.Live = (*generation)(nil)

// The method "missed" returns an error if a published generation lacks changes of a set by API calls that the store has
// already removed. The store removes a live change after the segments generations (published versions) in use on all
// instances have contained the change for the time freeAfter.
func (l *lists) missed(m *segments.Manifest, needed []string) error {
	if l.store == nil {
		return nil
	}
	for i := range m.Sets {
		set, freed := &m.Sets[i], l.store.Lists().Freed(m.Sets[i].Name)
		if slices.Contains(needed, set.Name) && freed > 0 &&
			set.AsOf.Before((freed + live.Margin).Time()) {
			return &segments.AsOfError{Err: fmt.Errorf(
				"the published file of set %s contains changes only up to %s, but "+
					"the store no longer has the changes by API calls up to %s: "+
					"export the set again, and publish a build with the new export "+
					"(a later --as-of without a new export would lose changes)", set.Name,
				set.AsOf.Format(time.RFC3339), freed.Time().Format(time.RFC3339))}
		}
	}
	return nil
}

// overruled() returns the users of a set whom an API call added after the time "before", but not after the time "next".
// A build that includes all changes up to the time "next" takes precedence over API calls before this time. Before the
// service has opened the store, overruled() returns nil.
func (l *lists) overruled(set string, before, next time.Time) []capping.UserID {
	if l.store == nil {
		return nil
	}
	return l.store.Lists().Overruled(set, instantOf(before), instantOf(next))
}

// The method "changes" returns a counter that increases with each live change (change of a set by an API call).
func (l *lists) changes() uint64 {
	if l.store == nil {
		return 0
	}
	return l.store.Lists().Changed()
}

// instantOf converts a time to an instant. The zero time becomes 0.
func instantOf(at time.Time) capping.Instant {
	if at.IsZero() {
		return 0
	}
	return capping.InstantOf(at)
}

// newLists returns a value of the type lists without a store and segments, which later steps of the service's start
// add.
func newLists(cfg *config.Config) *lists {
	l := &lists{}
	l.take(cfg)
	return l
}

// The method take stores the configuration whose rules for sets apply from now on.
func (l *lists) take(cfg *config.Config) { l.declared.Store(cfg) }

// isLive reports whether the configuration allows the set to exist only through API calls, before any build contains
// it.
func (l *lists) isLive(set string) bool { return l.declared.Load().Sets.IsLive(set) }

// The method "on" wraps a snapshot of the segments, so that the caller can find required sets that the snapshot lacks.
func (l *lists) on(snapshot *segments.Snapshot) *generation {
	return &generation{Snapshot: snapshot, lists: l}
}

// The method use returns the segments generation in use, combined with all live changes (changes of sets by API calls)
// that this instance knows.
func (l *lists) use() *generation {
	snapshot, g := l.refresher.Current(), l.inUse.Load()
	if g != nil && g.Snapshot == snapshot && !l.outdated(g) {
		return g
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	g = l.inUse.Load()
	if g == nil || g.Snapshot != snapshot || l.outdated(g) {
		g = l.next(snapshot, g)
		l.inUse.Store(g)
	}
	return g
}

func (l *lists) outdated(g *generation) bool {
	return l.store != nil && l.store.Lists().Changed() != g.changed
}

// The method next combines a snapshot of the segments with the latest live changes of sets (by API calls). The method
// next reuses results from the earlier generation in the argument "before", which may be nil.
func (l *lists) next(snapshot *segments.Snapshot, before *generation) *generation {
	g := &generation{Snapshot: snapshot, of: l.refresher, lists: l, views: map[string]*live.View{},
		behind: map[string]capping.Instant{}}
	if l.store == nil {
		return g
	}
	known := l.store.Lists()
	g.versions, g.changed = known.Look(func(set string, view viewer) {
		var earlier *live.View
		if before != nil {
			earlier = before.views[set]
		}
		g.views[set] = view(snapshot.Set(set), wire.BuiltAsOf(snapshot, set), earlier)
	})
	for set, upTo := range known.AllFreed() {
		// If the generation does not contain the set, the guard has already compared the generation with the previous
		// generation.
		if snapshot.Set(set) != nil && upTo+live.Margin > wire.BuiltAsOf(snapshot, set) {
			g.behind[set] = upTo
		}
	}
	return g
}

type viewer = func(base *bitmap.Bitmap, asOf capping.Instant, before *live.View) *live.View

// AsOf returns the time up to which the published build of a set includes all changes.
func (g *generation) AsOf(set string) time.Time {
	switch {
	case g.of == nil:
		return g.CreatedAt()
	case g.Snapshot.Set(set) == nil: // the set exists only through API calls, so it is never old
		return capping.Never.Time()
	}
	return g.of.AsOf(set)
}

// Set returns the set with the given name.
func (g *generation) Set(name string) (capping.Set, bool) {
	if view := g.views[name]; view != nil && (g.Snapshot.Set(name) != nil || g.lists.isLive(name)) {
		return view, true
	}
	if set := g.Snapshot.Set(name); set != nil {
		return capping.SetByNumber{Members: set}, true
	}
	if g.lists != nil && g.lists.isLive(name) {
		return capping.SetByNumber{Members: nobody}, true
	}
	return nil, false
}

var nobody = bitmap.Of()

// Versions implements capping.Live.
func (g *generation) Versions() []string { return g.versions }

// Renew implements capping.Live.
func (g *generation) Renew(ctx context.Context, users []capping.UserID) (capping.Live, error) {
	if g.lists == nil || g.lists.store == nil {
		return g, nil
	}
	err := g.lists.store.Renew(ctx, users)
	g.lists.mu.Lock()
	defer g.lists.mu.Unlock()
	return g.lists.next(g.Snapshot, g), err
}

// Behind implements capping.Live.
func (g *generation) Behind(set string) capping.Instant { return g.behind[set] }

// These constants are the intervals of the background work on live changes (changes of sets by API calls).
const (
	mergeEvery = time.Second
	freeEvery  = 30 * time.Second
	// freeAfter is the time for which all generations in use must have contained a live change before the store removes
	// the change. Within this time, operators usually roll back a wrong build of a set.
	freeAfter = 10 * time.Minute
)

// Until ctx ends, the method tend merges and removes live changes (changes of sets by API calls), so that look-ups in
// the sets stay fast.
func (l *lists) tend(ctx context.Context, clock func() time.Time, warn func(error)) {
	if l.store == nil {
		return
	}
	l.announce()
	merging, freeing := time.NewTicker(mergeEvery), time.NewTicker(freeEvery)
	defer merging.Stop()
	defer freeing.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-merging.C:
			l.merge()
		case <-freeing.C:
			l.announce()
			if err := l.free(ctx, clock()); err != nil && ctx.Err() == nil {
				warn(err)
			}
		}
	}
}

// The method merge adds the live changes of sets (by API calls) since the last merge to the bitmaps of the sets in
// memory.
func (l *lists) merge() {
	g, merged, work := l.use(), map[string]*live.View{}, false
	for set, view := range g.views {
		merged[set] = l.store.Lists().Merge(set, view)
		work = work || merged[set] != view
	}
	if !work {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.inUse.Load(); now.Snapshot == g.Snapshot { // next adds later changes to the merged views
		l.inUse.Store(l.next(g.Snapshot, &generation{views: merged}))
	}
}

// The method announce tells the other instances the as-of time of each set with live changes (changes by API calls).
// The as-of time of a set is the time up to which the segments generation in use includes all changes of the set.
func (l *lists) announce() {
	at, snapshot := map[string]capping.Instant{}, l.refresher.Current()
	for _, size := range l.store.Lists().Sizes() {
		at[size.Set] = wire.BuiltAsOf(snapshot, size.Set)
	}
	l.store.AnnounceAsOf(at)
}

// The method "free" removes live changes (changes of sets by API calls) from the store. The store may remove a live
// change when the segments generations (published versions) in use on all instances have contained it for the time
// freeAfter.
func (l *lists) free(ctx context.Context, now time.Time) error {
	sizes, upTo := l.store.Lists().Sizes(), map[string]capping.Instant{}
	contained := l.contained(sizes, now)
	others, ok := l.store.OthersAsOf()
	if !ok || contained == nil {
		return nil
	}
	for _, size := range sizes {
		at := contained[size.Set]
		if other, told := others[size.Set]; told {
			at = min(at, other)
		}
		if at -= live.Margin; size.Oldest > 0 && size.Oldest <= at {
			upTo[size.Set] = at
		}
	}
	if len(upTo) == 0 {
		return nil
	}
	return l.store.Free(ctx, upTo)
}

// contained() returns a time for each set. Every segments generation (published version) in use during the last ten
// minutes (freeAfter) contained all changes of the set up to the returned time. If the service has noted the
// generations in use (l.seen) for less than ten minutes, contained() returns nil.
func (l *lists) contained(sizes []live.Size, now time.Time) map[string]capping.Instant {
	snapshot, latest := l.refresher.Current(), sighting{now, map[string]capping.Instant{}}
	for _, size := range sizes {
		latest.asOf[size.Set] = wire.BuiltAsOf(snapshot, size.Set)
	}
	l.seen = append(l.seen, latest)
	for len(l.seen) > 1 && now.Sub(l.seen[1].at) >= freeAfter {
		l.seen = l.seen[1:]
	}
	if now.Sub(l.seen[0].at) < freeAfter {
		return nil
	}
	least := map[string]capping.Instant{}
	for _, size := range sizes {
		least[size.Set] = capping.Never
		for _, s := range l.seen {
			least[size.Set] = min(least[size.Set], s.asOf[size.Set])
		}
	}
	return least
}

// nearlyFull describes the sets whose number of live changes (by API calls) is near the configured maximum.
func (l *lists) nearlyFull() (list []string) {
	if l.store == nil {
		return nil
	}
	known, rules := l.store.Lists(), l.declared.Load().Sets
	for _, size := range known.Sizes() {
		if n := known.Len(size.Set); rules.NearlyFull(size.Set, n) {
			list = append(list, fmt.Sprintf("sets.%s: the set has %d live changes, and its bound (max_live) is %d: "+
				"publish a build that contains them, or raise the bound", size.Set, n, rules.Max(size.Set)))
		}
	}
	return list
}
