// Package livetest tests stores of live changes: callers change a set and ask for decisions at once, and an oracle
// compares the decisions with the acknowledged changes.
package livetest

import (
	"context"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/live"
)

// Set is the suppressed set in the policy of NewCapper. Calls alone make the set.
const Set = "opted-out"

// NewCapper returns a capper over the store whose sends never reach the users of Set. Retention is the retention of its
// policy. clock is the clock of the store.
func NewCapper(store capping.Store, retention time.Duration, clock func() time.Time) *capping.Capper {
	changes, ok := capping.As[live.Store](store)
	if !ok {
		panic("the store keeps no live changes")
	}
	policy := &capping.Policy{
		Default:  []capping.Limit{{Max: 1000, Window: retention}},
		Suppress: []capping.Suppression{{Set: Set}},
	}
	return capping.New(store, func() capping.Segments { return take(changes) }, policy, clock)
}

// generation is a generation without segments, whose one set is made only by calls.
type generation struct {
	capping.DenseIDs
	store    live.Store
	versions []string
	view     *live.View
}

var _ capping.Live = (*generation)(nil)

type viewer = func(base *bitmap.Bitmap, asOf capping.Instant, before *live.View) *live.View

// take returns the generation with every change that the instance knows.
func take(store live.Store) *generation {
	g := &generation{store: store}
	g.versions, _ = store.Lists().Look(func(set string, view viewer) {
		if set == Set {
			g.view = view(nil, 0, nil)
		}
	})
	return g
}

// Generation returns a constant name.
func (g *generation) Generation() string { return "live" }

// Names returns no segment.
func (g *generation) Names() []string { return nil }

// Lookup finds no user in a segment.
func (g *generation) Lookup([]uint32, []uint8) {}

// Zones returns no time zone.
func (g *generation) Zones() []*time.Location { return nil }

// LookupZones finds no user in a time zone.
func (g *generation) LookupZones([]uint32, []uint16) {}

// Set returns the set with its changes.
func (g *generation) Set(name string) (capping.Set, bool) {
	if name == Set && g.view != nil {
		return g.view, true
	}
	return nobody{}, name == Set
}

type nobody struct{}

// Mark marks no user.
func (nobody) Mark([]capping.UserID, []uint32, []uint8, uint8) {}

// Versions returns the versions of the changes in the set.
func (g *generation) Versions() []string { return g.versions }

// Renew returns the generation with every change of the users that was stored before.
func (g *generation) Renew(ctx context.Context, users []capping.UserID) (capping.Live, error) {
	err := g.store.Renew(ctx, users)
	return take(g.store), err
}

// Behind returns 0, because nothing is freed.
func (g *generation) Behind(string) capping.Instant { return 0 }

// Decide implements Instance.
func Decide(ctx context.Context, capper *capping.Capper, message string, record bool,
	users []capping.UserID) []capping.Verdict {
	return capper.Filter(ctx, &capping.Send{
		Message: capping.Message{ID: message}, Users: users, Enforce: true, Record: record,
	}).Verdicts
}
