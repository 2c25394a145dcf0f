package redisstore

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestOpenRefusesWhatBreaksThePromise(t *testing.T) {
	t.Parallel()
	const secret = "correct horse"
	c := testcluster.Single(t, testcluster.Options{Password: secret})
	good := Config{Addrs: c.Addrs, Password: secret, ReplicaAcks: FixedAcks(0)}
	s := openTest(t, good)
	client := s.top.Route(0).Client()

	for name, test := range map[string]struct {
		set    []string
		change func(*Config)
		want   string
	}{
		"evicting policy": {
			set:  []string{"maxmemory-policy", "allkeys-lru", "noeviction"},
			want: "maxmemory-policy is allkeys-lru, which silently deletes recorded sends: set it to noeviction",
		},
		"too few replicas": {
			change: func(c *Config) { c.ReplicaAcks = Healthy },
			want:   "has 0 replicas, but replica_acks: healthy needs 1: add replicas, or set replica_acks: 0",
		},
		"no append-only file": {
			set:    []string{"appendonly", "no", "yes"},
			change: func(c *Config) { c.ReplicaAcks = FixedAcks(2) },
			want:   "appendonly is no",
		},
		"wrong password": {change: func(c *Config) { c.Password = "battery" }, want: "WRONGPASS"},
		"no password":    {change: func(c *Config) { c.Password = "" }, want: "NOAUTH"},
		"skewed clock": {
			change: func(c *Config) {
				c.ClockSkew = 200 * time.Millisecond
				c.Clock = func() time.Time { return time.Now().Add(-time.Hour) }
			},
			want: "its clock differs from this machine's by 1h0m",
		},
		"no password of the user": {
			change: func(c *Config) { c.Username, c.Password = leastUser, "" },
			want:   `username "capper" has no password, so Redis would use the user 'default'`,
		},
		"no server": {change: func(c *Config) { c.Addrs = []string{"127.0.0.1:1"} }, want: "redis 127.0.0.1:1: "},
		"no address": {change: func(c *Config) { c.Addrs = nil }, want: "addrs: must contain the host:port of at " +
			"least one Redis server"},
		"wild skew": {change: func(c *Config) { c.ClockSkew = -1 }, want: "clock_skew: must be from 0 to 1m0s, " +
			"got -1ns"},
		"wild number": {change: func(c *Config) { c.ReplicaAcks = 99 },
			want: "replica_acks: must be 'healthy' or a number from 0 to 5, got 98"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.set != nil {
				require.NoError(t, client.ConfigSet(t.Context(), test.set[0], test.set[1]).Err())
				defer func() { require.NoError(t, client.ConfigSet(t.Context(), test.set[0], test.set[2]).Err()) }()
			}
			config := good
			if test.change != nil {
				test.change(&config)
			}
			_, err := openInTime(t, config)
			require.ErrorContains(t, err, test.want)
			require.NotContains(t, err.Error(), secret)
			require.NotContains(t, err.Error(), "battery")
		})
	}
}

func TestOpenWarnsOfWhatCostsMemory(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Settings: []string{"hash-max-listpack-entries 64",
		"hash-max-listpack-value 64"}})
	var log bytes.Buffer
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0),
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	storetest.IsOK(t, s)
	warnings := warningsOf(t, s)
	require.Len(t, warnings, 3)
	require.Contains(t, warnings[0], "replica_acks is 0")
	require.Contains(t, warnings[1], "hash-max-listpack-entries is 64: logs take several times the memory with less "+
		"than 191")
	require.Contains(t, warnings[2], "hash-max-listpack-value is 64: logs take several times the memory with less "+
		"than 256")
	for _, w := range warnings {
		require.Contains(t, log.String(), w)
	}
}

func TestOpenWarnsOfReplicasThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 2})
	for acks, warnings := range map[Acks]int{Healthy: 0, FixedAcks(1): 1, FixedAcks(2): 0} {
		// instances of a fleet would differ
		s := openTest(t, unhurried(Config{Addrs: c.Addrs, ReplicaAcks: acks, Namespace: namespace()}))
		found := warningsOf(t, s)
		require.Len(t, found, warnings, acks)
		if warnings > 0 {
			require.Contains(t, found[0], "has 2 replicas, but replica_acks: 1 waits for 1: a send is lost if a "+
				"replica without it is promoted")
		}
	}
}

func TestManagedServersThatHideSettingsAreWarnedOf(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Settings: []string{`rename-command CONFIG ""`}})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	require.Len(t, warningsOf(t, s), 3)
	require.Contains(t, warningsOf(t, s)[1], "hides hash-max-listpack-entries")
}

// A promoted replica does not get its master's scripts by replication.
func TestScriptsAreOnReplicasToo(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	for _, addr := range testcluster.Shared(t) {
		client := admin(t, addr)
		testkit.Eventually(t, func() bool {
			found, err := client.ScriptExists(t.Context(), s.scripts.Filter.SHA, s.scripts.Release.SHA).Result()
			return err == nil && found[0] && found[1]
		}, addr)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	s := openShared(t, func(c *Config) { c.Registerer = registry })
	second := openShared(t, func(c *Config) { c.Registerer = registry })
	filter(t, s, batchOf("a", []capping.UserID{1}))
	filter(t, second, batchOf("a", []capping.UserID{1}))
	require.Error(t, s.Filter(background(t, 0), batchOf("b", []capping.UserID{1}), make([]capping.Verdict, 1)))
	require.Equal(t, 1.0, sample(t, registry, "capper_store_errors_total", "deadline"))
}

// sample returns the counter or gauge with all the label values.
func sample(t *testing.T, registry *prometheus.Registry, name string, values ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			found := 0
			for _, label := range metric.GetLabel() {
				if slices.Contains(values, label.GetValue()) {
					found++
				}
			}
			if family.GetName() == name && found == len(values) {
				return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	require.Fail(t, "no sample", "%s %v", name, values)
	return 0
}

func TestParseAcks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Acks{"healthy": Healthy, "0": FixedAcks(0), "2": FixedAcks(2)} {
		acks, err := ParseAcks(text)
		require.NoError(t, err)
		require.Equal(t, want, acks)
		require.Equal(t, text, acks.String())
	}
	for _, text := range []string{"", "-1", "6", "all", "1.5"} {
		_, err := ParseAcks(text)
		require.ErrorContains(t, err, "replica_acks", text)
	}
}

// The status reports the present: without a restart, a repaired setting loses its warning and a changed setting gets
// one.
func TestWarningsAreOfThePresent(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Masters: 3, Replicas: 1, NodeTimeout: steady,
		Settings: []string{"cluster-require-full-coverage yes"}})
	var log testkit.Log
	s := openTest(t, unhurried(Config{Addrs: append([]string{"127.0.0.1:1"}, c.Addrs...), Logger: log.Logger()}))
	const what = "cluster-require-full-coverage is yes: while one shard has no master, the users of all shards are " +
		"unavailable"
	for _, addr := range c.Addrs[:3] {
		require.Contains(t, log.String(), "node "+addr+": "+what)
	}
	told := func() string { return strings.Join(warningsOf(t, s), "\n") }
	require.Contains(t, told(), "redis 127.0.0.1:1: dial tcp")
	for _, addr := range c.Addrs[3:] {
		require.Contains(t, told(), "replica "+addr+": "+what)
	}
	for _, addr := range c.Addrs {
		require.NoError(t, admin(t, addr).ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err())
	}
	testkit.Eventually(t, func() bool { return !strings.Contains(told(), what) })
	require.Contains(t, told(), "redis 127.0.0.1:1: dial tcp", "it never answered")
	storetest.IsOK(t, s)
}

// With Redis' default settings one shard without a master stops all shards; otherwise only its own users are
// affected.
func TestOneShardAway(t *testing.T) {
	t.Parallel()
	for coverage, everybody := range map[string]bool{"yes": true, "no": false} {
		t.Run(coverage, func(t *testing.T) {
			t.Parallel()
			c := testcluster.Start(t, testcluster.Options{Settings: []string{"cluster-require-full-coverage " +
				coverage}})
			s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Timeout: 2 * time.Second})
			users := spread(600)
			require.Equal(t, 600, count(filter(t, s, batchOf("a", users, rolling(1, time.Hour))), capping.Allowed))
			lost := 0
			for p := range s.keyspace.Partitions {
				if s.top.Route(p).Addr() == c.Addrs[1] {
					lost++
				}
			}
			require.NoError(t, c.Kill(c.Addrs[1]))
			testkit.Eventually(t, func() bool {
				verdicts := make([]capping.Verdict, len(users))
				_ = s.Filter(t.Context(), batchOf("b", users, rolling(1, time.Hour)), verdicts)
				require.Zero(t, count(verdicts, capping.Allowed))
				away := count(verdicts, capping.Unavailable)
				if everybody {
					return away == len(users) // once the cluster has noticed
				}
				require.Less(t, away, len(users))
				return away > 0 && strings.Contains(infoOf(t, c.Addrs[0]), "cluster_slots_fail:5462")
			})
			require.NotZero(t, lost)
			if everybody {
				testkit.Eventually(t, func() bool {
					return strings.Contains(s.Health(t.Context()).Error,
						"cluster_state is fail on every node: all users are unavailable")
				})
			} else {
				require.NotContains(t, s.Health(t.Context()).Error, "cluster_state is fail")
			}
		})
	}
}

func infoOf(t *testing.T, addr string) string {
	t.Helper()
	text, err := admin(t, addr).ClusterInfo(t.Context()).Result()
	require.NoError(t, err)
	return text
}
