//go:build storms

package redisstore

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testkit"
)

// own returns partitions that the node holds, without the partition of the records.
func (f *promiseTrial) own() (partitions []int) {
	s := f.stores[0]
	for p := range s.keyspace.Partitions {
		if s.top.Route(p).Addr() == f.addr {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

// drop deletes keys of the node, like evictions.
func (f *promiseTrial) drop(keys ...string) {
	f.Helper()
	for _, key := range keys {
		require.NoError(f, f.node.Del(f.Context(), key).Err(), key)
	}
}

func (f *promiseTrial) signs(partitions []int) (keys []string) {
	for _, p := range partitions {
		keys = append(keys, f.stores[0].signKey(p))
	}
	return keys
}

func (f *promiseTrial) marks(partitions []int) (keys []string) {
	for _, p := range partitions {
		keys = append(keys, f.stores[0].prefixes[p]+"-mark")
	}
	return keys
}

// acceptLoss lets the last store accept the loss, and makes all stores check their servers.
func (f *promiseTrial) acceptLoss() {
	f.Helper()
	losses, err := f.stores[len(f.stores)-1].AcceptLoss(f.Context(), "it was looked at")
	require.NoError(f, err)
	require.NotEmpty(f, losses)
	for _, s := range f.stores {
		looked(f, s)
		testkit.Eventually(f, func() bool { return len(s.top.BrokenPromises()) == 0 })
	}
}

// stays requires that all stores quarantine exactly these partitions.
func (f *promiseTrial) stays(reason string, partitions ...int) {
	f.Helper()
	for _, s := range f.stores {
		looked(f, s)
		for p := range s.keyspace.Partitions {
			bar := s.top.Bar(p)
			if !slices.Contains(partitions, p) {
				require.Nil(f, bar, "partition %d: %v", p, bar)
				continue
			}
			require.NotNil(f, bar, "partition %d", p)
			require.Equal(f, reason, bar.Reason)
		}
	}
}

// beganAnew restarts capper with create: true, and requires that every user is decided.
func (f *promiseTrial) beganAnew() {
	f.Helper()
	again, err := openInTime(f, f.config)
	require.NoError(f, err)
	require.NoError(f, again.Close())
	for _, s := range f.stores {
		looked(f, s)
		f.decided(s)
	}
}

// An accepted loss releases the partitions whose sentinel keys, marks and records were among the evicted keys.
func TestAcceptanceBeginsAnewWhereSignsWereEvicted(t *testing.T) {
	t.Parallel()
	f := newPromiseTrial(t)
	s := f.stores[0]
	f.addr = s.top.Route(s.keyspace.FormatPartition()).Addr() // which has the records, too
	f.node = admin(t, f.addr)
	own := f.own()
	for _, lost := range []struct {
		what string
		keys []string
	}{
		{"nothing more", nil},
		{"signs", f.signs(own[:3])},
		{"a mark", f.marks(own[2:3])},
		{"signs and marks", slices.Concat(f.signs(own[:5]), f.marks(own[3:7]))},
		{"the marker", []string{s.marker.Key}},
		{"the marker, its sign and a sign", []string{s.marker.Key, s.marker.Key + ":-sign", f.signs(own)[0]}},
		{"all records", append([]string{s.marker.Key, s.marker.StoreKey()}, s.marker.Keys()...)},
		{"the store's record, and the copy of the ledger", []string{s.marker.StoreKey(), s.marker.Key + ":-promises"}},
		{"all signs and marks", slices.Concat(f.signs(own), f.marks(own))},
	} {
		t.Log(lost.what)
		f.evict("volatile-ttl", 40)
		f.drop(lost.keys...)
		for _, one := range f.stores {
			looked(t, one)
			f.barred(one, "until an operator accepts the loss") // whatever was seen first
		}
		f.acceptLoss()
		for _, one := range f.stores {
			f.decided(one)
			require.Empty(t, one.barredPartitions())
			require.True(t, one.top.Signed())
		}
	}
}

// The acceptance of one loss keeps partitions with other losses quarantined, on the same server and on another one.
func TestAcceptanceLeavesOtherLossesBarred(t *testing.T) {
	t.Parallel()
	f := newPromiseTrial(t)
	s := f.stores[0]
	f.addr = s.top.Route(s.keyspace.FormatPartition()).Addr()
	f.node = admin(t, f.addr)
	own := f.own()
	evicted := func() {
		f.evict("volatile-ttl", 40)
		for _, one := range f.stores {
			looked(t, one)
		}
		testkit.Eventually(t, func() bool {
			return len(s.top.BrokenPromises()) > 0 &&
				len(f.stores[1].top.BrokenPromises()) > 0
		})
	}

	// The store's records are evicted, and another server has lost a sign, which it did not evict.
	evicted()
	other := -1
	for p := range s.keyspace.Partitions {
		if s.top.Route(p).Addr() != f.addr {
			other = p
		}
	}
	require.NoError(t, admin(t, s.top.Route(other).Addr()).Del(t.Context(), s.signKey(other)).Err())
	f.drop(s.marker.Key, s.marker.StoreKey())
	f.acceptLoss()
	f.stays("gone", other)
	f.beganAnew()

	// An older state, and records that were dropped while the server loaded.
	evicted()
	require.NoError(t, f.node.HSet(t.Context(), f.marks(own)[0], "anew", 1, "at", 2).Err())
	require.NoError(t, f.node.Set(t.Context(), f.signs(own)[0], "2.5", 0).Err())
	f.acceptLoss()
	f.stays("older", own[0])
	f.beganAnew()
	evicted()
	require.NoError(t, f.node.Set(t.Context(), f.signs(own)[1], strconv.FormatInt(time.Now().UnixMilli(), 10)+".75",
		0).Err())
	f.drop(f.marks(own)[1])
	f.acceptLoss()
	f.stays("dropped", own[1])
	f.beganAnew()

	// The server was told to forget everything.
	evicted()
	require.NoError(t, f.node.FlushAll(t.Context()).Err())
	f.acceptLoss()
	f.stays("gone", own...)
	for _, one := range f.stores {
		require.Contains(t, one.Health(t.Context()).Error, "the records of the store are gone")
	}
	config := f.config
	config.MustExist = true
	_, err := openInTime(t, config)
	require.ErrorContains(t, err, "create: true")
	f.beganAnew()
}

// A server without an append-only file comes back empty, and acceptance makes it usable again. A server that evicted
// few keys and comes back empty counts as emptied.
func TestAcceptanceOfServersThatComeBackEmpty(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		breaks func(f *promiseTrial)
		anew   bool
	}{
		"without its append-only file": {func(f *promiseTrial) {
			f.set("appendonly", "no")
			for _, s := range f.stores {
				f.barred(s, "appendonly is no")
			}
		}, true},
		"after few evictions": {func(f *promiseTrial) {
			f.set("maxmemory-policy", "allkeys-lru") // for a moment, and nothing is evicted
			for _, s := range f.stores {
				f.barred(s, "maxmemory-policy is allkeys-lru")
			}
			f.set("maxmemory-policy", "noeviction")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newPromiseTrial(t)
			own := f.own()
			test.breaks(f)
			f.restartEmpty()
			testkit.Eventually(t, func() bool {
				looked(t, f.stores[0])
				return f.stores[0].top.Lost()[own[0]] != nil
			})
			f.set("appendonly", "yes")
			testkit.Eventually(t, func() bool {
				_, err := f.stores[0].AcceptLoss(t.Context(), "it was looked at")
				return err == nil
			})
			if !test.anew {
				testkit.Eventually(t,
					func() bool { looked(t, f.stores[1]); return len(f.stores[1].top.BrokenPromises()) == 0 })
				f.stays("gone", own...)
				f.beganAnew()
				return
			}
			for _, s := range f.stores {
				looked(t, s)
				require.Positive(t, f.decided(s)+count(f.mustAsk(s), capping.Denied))
				require.Empty(t, s.barredPartitions())
			}
		})
	}
}

// mustAsk runs a blast, and requires that every user is decided.
func (f *promiseTrial) mustAsk(s *Store) []capping.Verdict {
	f.Helper()
	verdicts, err := f.ask(s, f.users)
	require.NoError(f, err)
	return verdicts
}

// restartEmpty ends the node and its replica, and starts both without data.
func (f *promiseTrial) restartEmpty() {
	f.Helper()
	both := []string{f.replica(), f.addr}
	for _, addr := range both {
		require.NoError(f, f.cluster.Kill(addr))
		for _, name := range []string{"appendonlydir", "dump.rdb"} {
			require.NoError(f, os.RemoveAll(filepath.Join(f.cluster.Data(addr), name)))
		}
	}
	for _, addr := range both {
		require.NoError(f, f.cluster.Restart(addr))
	}
}

// A store that has lost its record is not taken for a store of an older version: no sentinel key is created again
// without an operator's word.
func TestALostRecordMakesNoSigns(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	require.Equal(t, 300, count(filter(t, s, batchOf("a", spread(300), rolling(1, week))), capping.Allowed))
	require.NoError(t, s.Close())
	p := s.keyspace.Partition(spread(300)[0])
	for key, partition := range map[string]int{s.marker.StoreKey(): s.keyspace.FormatPartition(), s.signKey(p): p} {
		require.NoError(t, admin(t, s.top.Route(partition).Addr()).Del(t.Context(), key).Err())
	}
	config := s.config
	config.MustExist = true
	_, err := openInTime(t, config)
	require.ErrorContains(t, err, "the server was emptied, and its recorded sends are lost: set "+
		"store.redis.create: true")
	again := openTest(t, s.config)
	require.Contains(t, strings.Join(warningsOf(t, again), "\n"), "store created again from the remaining data: 1 "+
		"of 65 partitions")
}
