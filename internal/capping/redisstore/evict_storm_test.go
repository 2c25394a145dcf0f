//go:build storms

package redisstore

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testkit"
)

// evictingServer makes a master evict keys under load until its users are unavailable, then repairs the setting and
// accepts the loss. Before that no user exceeds the limit. Acceptance creates evicted sentinel keys again, unless all
// of them are gone on a server that was flushed earlier, which the torture test may do.
var evictingServer = breakage{"an evicting policy, accepted", otherShards, func(f *field, s shard) {
	number := func(name string) int64 {
		text, err := f.admins[s.master].Info(f.Context()).Result()
		require.NoError(f, err)
		return topology.ParseInfo(text).Number(name)
	}
	set := func(name, value string) {
		require.NoError(f, f.admins[s.master].ConfigSet(f.Context(), name, value).Err())
	}
	before := number("evicted_keys")
	f.storming.loses(otherShards(f, s))
	set("maxmemory-policy", "allkeys-random")
	f.until("keys are evicted", func() bool { // buffers of clients come and go in the used memory
		set("maxmemory", strconv.FormatInt(number("used_memory")-64<<10, 10))
		return number("evicted_keys") > before
	})
	f.storming.leavesOpen(f)
	set("maxmemory", "0")
	set("maxmemory-policy", "noeviction")
	f.storming.answered(f, 40)
	require.Empty(f, f.storming.overGranted(), "granted more than the limit before anybody accepted the loss")
	f.until("the loss is accepted", func() bool {
		_, err := f.stores[0].AcceptLoss(f.Context(), "torture")
		return err == nil
	})
	for _, store := range f.stores {
		f.until("each instance knows", func() bool { return len(store.top.BrokenPromises()) == 0 })
		looked(f, store)
	}
	if len(f.stores[0].barredPartitions()) > 0 { // their signs were evicted: a restart begins anew
		f.beginAnew()
	}
}}

// loses notes that logs of all users except the spared ones may vanish, because an operator accepts that loss.
func (s *storm) loses(kept spared) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = kept
}

// lost reports whether the user's log may have vanished in an accepted loss.
func (s *storm) lost(user capping.UserID) bool { return s.kept != nil && !s.kept(nil, user) }

// overGranted returns the users who were allowed more than the limit, by the answers so far.
func (s *storm) overGranted() (over []capping.UserID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	type send struct {
		user  capping.UserID
		which identity
	}
	known, granted := map[send]bool{}, map[capping.UserID]int{}
	for _, a := range s.answers {
		for i, v := range a.verdicts {
			key := send{a.users[i], a.send}
			if (v.Outcome == capping.Allowed || v.Outcome == capping.Replayed) && !known[key] {
				known[key] = true
				granted[key.user]++
			}
		}
	}
	for user, n := range granted {
		if n > s.limit.Max {
			over = append(over, user)
		}
	}
	return over
}

// losingShards are the breakages that lose logs; an operator accepts each loss.
var losingShards = append([]breakage{evictingServer}, droppingShards...)

// Storms over servers that evict keys or drop records during loading: no user exceeds the limit before the
// acceptance, no log on another server vanishes, and every user is decided afterwards.
func TestNeverWrongWhenServersLoseLogs(t *testing.T) {
	t.Parallel()
	f := newField(t, nil)
	for i, b := range losingShards {
		t.Run(b.name, func(t *testing.T) {
			f := *f
			f.TB = t
			try := 0
			testkit.Steadily(t, mostTries, func() bool {
				s := f.stormAt(capping.UserID(i+1)*200_000_000+capping.UserID(try)*30_000_000, try, b)
				try++
				t.Log(s.tally)
				require.Zero(t, s.verify(t, f.stores[0]))
				require.NotZero(t, s.tally.grants)
				return s.sparedHealthy(t)
			}, "users of healthy nodes became unavailable")
		})
	}
}
