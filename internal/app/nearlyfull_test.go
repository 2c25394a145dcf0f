package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/live"
)

// listed is a store of live changes that only lists them.
type listed struct {
	live.Store
	lists *live.Lists
}

func (s listed) Lists() *live.Lists { return s.lists }

// TestASetNearItsBoundIsAProblem checks that the status warns of a set from 90 % of its bound on.
func TestASetNearItsBoundIsAProblem(t *testing.T) {
	t.Parallel()
	l := newLists(&config.Config{Sets: live.Rules{"opted-out": {Max: 10}}})
	require.Empty(t, l.nearlyFull())
	known := live.New(0)
	l.store = listed{lists: known}
	add := func(set string, users ...capping.UserID) {
		known.Apply(live.RecordOf(&live.Batch{Set: set, Add: users}, 1000))
	}
	add("opted-out", 1, 2, 3, 4, 5, 6, 7, 8)
	add("other", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	require.Empty(t, l.nearlyFull())
	add("opted-out", 9)
	require.Equal(t, []string{"sets.opted-out: the set has 9 live changes, and its bound (max_live) is 10: publish a " +
		"build that contains them, or raise the bound"}, l.nearlyFull())
	l.take(&config.Config{Sets: live.Rules{"opted-out": {Max: 20}}})
	require.Empty(t, l.nearlyFull())
}
