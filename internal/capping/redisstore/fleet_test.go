package redisstore

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// policyOf returns a policy with one rolling window.
func policyOf(version string, window time.Duration, channels map[string]capping.Channel) *capping.Policy {
	return &capping.Policy{Version: version, Channels: channels,
		Default: []capping.Limit{{Name: "a", Max: 2, Window: window}}}
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// weekly returns a send under a limit of two a week, for a store that has announced that limit.
func weekly(message string, users []capping.UserID) *capping.Batch {
	return batchOf(message, users, rolling(2, week))
}

// daily returns a send under a limit of five a day, whose policy sees no more than a day.
func daily(message string, users []capping.UserID) *capping.Batch {
	b := batchOf(message, users, rolling(5, day))
	b.Retention = day
	return b
}

// A limit that disappears briefly, by a mistaken reload or in an instance with another file, erases none of its
// sends.
func TestALimitThatDisappearsForAMomentErasesNothing(t *testing.T) {
	t.Parallel()
	users := spread(3000)
	send := func(s *Store, b *capping.Batch, want capping.Outcome) {
		t.Helper()
		require.Equal(t, len(users), count(filter(t, s, b), want))
	}
	open := func(c *clock, ns string, policy *capping.Policy) *Store {
		s := openShared(t, func(config *Config) { config.Clock, config.Namespace = c.now, ns })
		require.NoError(t, s.Announce(t.Context(), policy))
		return s
	}
	week, day := policyOf("w", week, nil), policyOf("d", day, nil)
	for name, mistake := range map[string]func(right *Store, c *clock) *Store{
		"a reload": func(right *Store, _ *clock) *Store {
			require.NoError(t, right.Announce(t.Context(), day))
			return right
		},
		"an instance with another file": func(right *Store, c *clock) *Store {
			return open(c, right.config.Namespace,
				day)
		},
		"all instances start anew": func(right *Store, c *clock) *Store {
			return open(c, right.config.Namespace, day)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			right := open(c, namespace(), week)
			send(right, weekly("1", users), capping.Allowed)
			c.advance(30 * time.Hour)
			wrong := mistake(right, c)
			send(wrong, daily("2", users), capping.Allowed)
			c.advance(30 * time.Hour)
			send(wrong, daily("3", users), capping.Allowed)
			require.Equal(t, 7*24*time.Hour, wrong.Retention(), "the longer one is in force within itself")
			require.NoError(t, right.Announce(t.Context(), week))
			send(right, weekly("4", users), capping.Denied)
			for _, user := range users[:10] {
				partition, key, _ := right.key(user)
				ttl, err := admin(t, right.top.Route(partition).Addr()).PTTL(t.Context(), key).Result()
				require.NoError(t, err)
				require.Greater(t, ttl, 6*24*time.Hour, "the key lasts as long")
			}
		})
	}
}

// A retention falls only after its own length has passed since it was last renewed.
func TestARetentionStaysInForceWithinItself(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	require.NoError(t, s.Announce(t.Context(), policyOf("w", week, nil)))
	require.Empty(t, warningsOf(t, s))
	require.NoError(t, s.Announce(t.Context(), policyOf("d", day, nil)))
	require.Equal(t, week, s.Retention())
	require.Equal(t, []string{"sends are kept for 168h, although the limits of this instance look back only 24h, " +
		"because longer limits were in force recently, here or in another instance"}, warningsOf(t, s))
	client := admin(t, s.top.Route(s.keyspace.FormatPartition()).Addr())
	renewed := func(ago time.Duration) {
		at := fmt.Sprint(time.Now().Add(-ago).UnixMilli())
		require.NoError(t, client.HSet(t.Context(), s.marker.Key+":retentions", week.Milliseconds(), at).Err())
		require.NoError(t, s.Announce(t.Context(), policyOf("d", day, nil)))
	}
	renewed(week - time.Minute)
	require.Equal(t, week, s.Retention())
	renewed(week)
	require.Equal(t, day, s.Retention())
	fields, err := client.HKeys(t.Context(), s.marker.Key+":retentions").Result()
	require.NoError(t, err)
	require.Equal(t, []string{fmt.Sprint(day.Milliseconds())}, fields)

	// A call that needs more than was announced is seen to as well.
	filter(t, s, batchOf("a", []capping.UserID{1}))
	require.Equal(t, week, s.Retention())
	testkit.Eventually(t, func() bool {
		found, err := client.HExists(t.Context(), s.marker.Key+":retentions", fmt.Sprint(week.Milliseconds())).Result()
		return err == nil && found
	})
}

func TestInstancesSeeEachOther(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	first := openShared(t, func(c *Config) { c.Registerer = registry })
	second := openShared(t, func(c *Config) {
		c.Namespace, c.ReplicaAcks, c.ClockSkew = first.config.Namespace, FixedAcks(1), time.Second
	})
	third := openShared(t, func(c *Config) { c.Namespace = first.config.Namespace })
	for s, version := range map[*Store]string{first: "v1", second: "v2", third: "v1"} {
		channels := map[string]capping.Channel{"push": 1}
		if s == third {
			channels["email"] = 2
		}
		require.NoError(t, s.Announce(t.Context(), policyOf(version, week, channels)))
	}
	first.fleet.beatSoon()
	differing := map[string]int{"config_version": 1, "replica_acks": 1, "clock_skew": 1, "channels": 1}
	testkit.Eventually(t, func() bool {
		fleet := first.Health(t.Context()).Fleet
		return fleet.Instances == 3 && maps.Equal(fleet.Differing, differing)
	})
	for _, page := range []string{"docs/api.md", "internal/server/openapi.yaml"} {
		text, err := os.ReadFile("../../../" + page)
		require.NoError(t, err)
		for key := range first.fleet.announcementOf(policyOf("v1", week, nil)).text {
			require.Regexp(t, `(?i)(differ|other instances with another).*`+key, string(text), page)
		}
	}
	storetest.IsOK(t, first)
	require.Equal(t, []string{"sends are kept for 168h0m2s, although the limits of this instance look back only " +
		"168h, because longer limits were in force recently, here or in another instance",
		"1 of 2 other instances differ from this one in channels",
		"1 of 2 other instances differ from this one in clock_skew",
		"1 of 2 other instances differ from this one in config_version",
		"1 of 2 other instances differ from this one in replica_acks"},
		warningsOf(t, first))
	testkit.Eventually(t, func() bool {
		return sample(t, registry, "capper_store_instances_differing", "config_version") == 1 &&
			sample(t, registry, "capper_store_instances", "redis") == 3
	})

	// Who stops is off the list at once, who is silent for long some time later.
	client := admin(t, first.top.Route(first.keyspace.FormatPartition()).Addr())
	require.True(t, client.HExists(t.Context(), first.marker.Key+":instances", second.fleet.id).Val())
	require.NoError(t, second.Close())
	testkit.Eventually(t, func() bool { // on a busy machine its word may be late: that of another may not
		leaves := openTest(t, second.config)
		require.NoError(t, leaves.Close())
		left := client.HDel(t.Context(), first.marker.Key+":instances", leaves.fleet.id)
		return left.Err() == nil && left.Val() == 0
	})
	old := fmt.Sprint(time.Now().Add(-silentFor-time.Second).UnixMilli()) + " {}"
	require.NoError(t, client.HSet(t.Context(), first.marker.Key+":instances", second.fleet.id, old).Err())
	require.NoError(t, first.Announce(t.Context(), policyOf("v1", week, map[string]capping.Channel{"push": 1,
		"email": 2})))
	testkit.Eventually(t, func() bool {
		fleet := first.Health(t.Context()).Fleet
		return fleet.Instances == 2 && len(fleet.Differing) == 0
	})
	require.False(t, client.HExists(t.Context(), first.marker.Key+":instances", second.fleet.id).Val())
}

func TestNumbersOfChannelsThatContradictAreRefused(t *testing.T) {
	t.Parallel()
	type channels = map[string]capping.Channel
	s := openShared(t, nil)
	announce := func(s *Store, c channels) error { return s.Announce(t.Context(), policyOf("v", week, c)) }
	require.NoError(t, announce(s, channels{"push": 1, "email": 2}))
	require.ErrorContains(t, announce(s, channels{"push": 3}), "channels.push: has the numeric id 3 in the "+
		"configuration, but in stored sends channel push has the numeric id 1")
	require.ErrorContains(t, announce(s, channels{"sms": 2}), "channels.sms: has the numeric id 2 in the "+
		"configuration, but in stored sends channel email has the numeric id 2")
	require.Equal(t, 1, count(filter(t, s, batchOf("a", []capping.UserID{1})), capping.Allowed), "the one before stays")

	again := openShared(t, func(c *Config) { c.Namespace = s.config.Namespace })
	require.Error(t, announce(again, channels{"email": 1, "push": 2}), "it outlives the instance")
	require.NoError(t, announce(again, channels{"email": 2, "sms": 3}), "push may be left out, sms may be new")
	require.Error(t, announce(again, channels{"sms": 1}), "the number of one that is left out is not free")

	// An instance whose numbers were contradicted meanwhile decides nothing, until they agree.
	client := admin(t, s.top.Route(s.keyspace.FormatPartition()).Addr())
	stored := func(number int, ago time.Duration) {
		require.NoError(t, client.HSet(t.Context(), s.marker.Key+":channels", "push",
			fmt.Sprint(number, " ", time.Now().Add(-ago).UnixMilli())).Err())
		s.fleet.beatSoon()
	}
	stored(9, 0)
	testkit.Eventually(t, func() bool { return s.Health(t.Context()).State == "down" })
	verdicts := make([]capping.Verdict, 1)
	require.ErrorContains(t, s.Filter(t.Context(), batchOf("b", []capping.UserID{1}), verdicts),
		"channels.push: has the numeric id 1 in the configuration")
	require.Equal(t, capping.Unavailable, verdicts[0].Outcome)
	// What nobody has used for longer than sends are kept is in no log.
	stored(9, 15*day)
	testkit.Eventually(t, func() bool { return s.Health(t.Context()).State == "ok" })
}

// Many instances can run every step of a start at the same time.
func TestManyInstancesStartAtOnce(t *testing.T) {
	t.Parallel()
	ns := namespace()
	var starts sync.WaitGroup
	for i := range 8 {
		starts.Go(func() {
			s, err := openInTime(t, Config{Addrs: testcluster.Shared(t), Namespace: ns})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Announce(t.Context(), policyOf(fmt.Sprint(i), week,
				map[string]capping.Channel{"push": 1})); err != nil {
				t.Error(err)
			}
			if h := s.Health(t.Context()); strings.Contains(fmt.Sprint(h.Warnings), "anew") {
				t.Error(h)
			}
			storetest.IsOK(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
}

// A heartbeat loads its scripts again after a node has lost them.
func TestBeatsGoOnWithoutScripts(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, c.Addrs[0])
	for i := range 3 {
		require.NoError(t, client.ScriptFlush(t.Context()).Err())
		require.NoError(t, client.Del(t.Context(), s.signKey(5)).Err())
		require.NoError(t, s.Announce(t.Context(), policyOf(fmt.Sprint(i), week, nil)))
		field, err := client.HGet(t.Context(), s.marker.Key+":instances", s.fleet.id).Result()
		require.NoError(t, err)
		require.Contains(t, field, fmt.Sprintf(`"config_version":"%d"`, i))
		require.NoError(t, client.ScriptFlush(t.Context()).Err())
		s.fleet.beat(t.Context())
		require.NotNil(t, s.top.Bar(5))
		beginAnew(t, s)
		require.Nil(t, s.top.Bar(5))
	}
}
