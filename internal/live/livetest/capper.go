// Package livetest tests stores of live changes (changes by API calls). In a test, callers change a set and immediately
// request decisions about sends. The test checks that each decision agrees with the changes of the set that the store
// acknowledged before the decision.
package livetest

import (
	"context"
	"time"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/live"
)

// The constant Set is the name of the only set of the tests. The policy of NewCapper denies sends to the users of the
// set. The set has no build; all its users come from live changes (changes by API calls).
const Set = "opted-out"

// NewCapper returns a Capper over the store. The policy of the returned Capper denies sends to the users of Set. The
// argument "retention" is the window of the only limit in the policy. The argument "clock" must be the clock that the
// store uses.
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

// The type "generation" is a test generation without segments. The one set of the test generation has no published
// users, only users from live changes (set changes by API calls).
type generation struct {
	capping.DenseIDs
	store    live.Store
	versions []string
	view     *live.View
}

var _ capping.Live = (*generation)(nil)

type viewer = func(base *bitmap.Bitmap, asOf capping.Instant, before *live.View) *live.View

// The function "take" returns a test generation whose set has all live changes (changes by API calls) that the instance
// has in memory.
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

// Names returns nil, because the test generation has no segments.
func (g *generation) Names() []string { return nil }

// Lookup does nothing, because the test generation has no segments.
func (g *generation) Lookup([]uint32, []uint8) {}

// Zones returns nil, because the test generation has no time zones.
func (g *generation) Zones() []*time.Location { return nil }

// LookupZones does nothing, because the test generation has no time zones.
func (g *generation) LookupZones([]uint32, []uint16) {}

// Set returns the set of the test generation with its live changes (changes by API calls).
func (g *generation) Set(name string) (capping.Set, bool) {
	if name == Set && g.view != nil {
		return g.view, true
	}
	return nobody{}, name == Set
}

type nobody struct{}

// The method Mark marks no user.
func (nobody) Mark([]capping.UserID, []uint32, []uint8, uint8) {}

// Versions returns, for each partition of the store, the latest version whose changes are all in the set.
func (g *generation) Versions() []string { return g.versions }

// Renew returns a test generation whose set has all changes of the users that were stored before the call.
func (g *generation) Renew(ctx context.Context, users []capping.UserID) (capping.Live, error) {
	err := g.store.Renew(ctx, users)
	return take(g.store), err
}

// The method Behind returns 0, because the test never removes live changes (changes by API calls) from the store.
func (g *generation) Behind(string) capping.Instant { return 0 }

// Decide implements Instance.
func Decide(ctx context.Context, capper *capping.Capper, message string, record bool,
	users []capping.UserID) []capping.Verdict {
	return capper.Filter(ctx, &capping.Send{
		Message: capping.Message{ID: message}, Users: users, Enforce: true, Record: record,
	}).Verdicts
}
