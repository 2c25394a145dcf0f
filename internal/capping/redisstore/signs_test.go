package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// pressure calls for users at their limit, in calls of every size, and counts the users who are allowed nevertheless.
type pressure struct {
	allowed, denied, unavailable atomic.Int64
	stop                         context.CancelFunc
	callers                      sync.WaitGroup
}

func press(s *Store, users []capping.UserID) *pressure {
	p := &pressure{}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop = func() { cancel(); p.callers.Wait() }
	for caller := range 6 {
		some := users[caller*len(users)/6 : (caller+1)*len(users)/6]
		if caller == 0 {
			some = some[:1]
		}
		p.callers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				verdicts := make([]capping.Verdict, len(some))
				bounded, done := context.WithTimeout(context.Background(), 2*time.Second)
				_ = s.Filter(bounded, batchOf(fmt.Sprint("more ", caller, " ", i), some, rolling(1, week)), verdicts)
				done()
				p.allowed.Add(int64(count(verdicts, capping.Allowed)))
				p.denied.Add(int64(count(verdicts, capping.Denied)))
				p.unavailable.Add(int64(count(verdicts, capping.Unavailable)))
			}
		})
	}
	return p
}

// pressed waits until n more users are decided, or left undecided.
func (p *pressure) pressed(t *testing.T, of *atomic.Int64, n int64) {
	t.Helper()
	want := of.Load() + n
	testkit.Eventually(t, func() bool { return of.Load() >= want })
}

// A master that comes back empty, or is emptied, affects only its own users.
func TestAnEmptiedShardCostsItsOwnUsers(t *testing.T) {
	t.Parallel()
	flush := func(t *testing.T, c *testcluster.Cluster, addr string) {
		require.NoError(t, admin(t, addr).FlushDB(t.Context()).Err())
	}
	for name, empty := range map[string]func(t *testing.T, c *testcluster.Cluster, addr string){
		"flushed":                   flush,
		"flushed, with the records": flush,
		"restarted without append-only file": func(t *testing.T, c *testcluster.Cluster, addr string) {
			require.NoError(t, c.Kill(addr))
			require.NoError(t, c.Restart(addr))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testcluster.Start(t, testcluster.Options{Settings: []string{"appendonly no", `save ""`}})
			config := Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Username: leastUser, Password: leastUser}
			s := openTest(t, config)
			victim := s.top.Route(s.keyspace.FormatPartition())
			if !strings.Contains(name, "records") {
				for p := 0; victim == s.top.Route(s.keyspace.FormatPartition()); p++ {
					victim = s.top.Route(p)
				}
			}
			var own, others []capping.UserID
			for _, user := range spread(6000) {
				if s.top.Route(s.keyspace.Partition(user)) == victim {
					own = append(own, user)
				} else {
					others = append(others, user)
				}
			}
			all := append(own[:len(own):len(own)], others...)
			require.Equal(t, len(all), count(filter(t, s, batchOf("first", all, rolling(1, week))), capping.Allowed))
			p := press(s, own)
			defer p.stop()
			p.pressed(t, &p.denied, 5000)
			empty(t, c, victim.Addr())
			p.pressed(t, &p.unavailable, 5000)
			testkit.Eventually(t, func() bool {
				h := s.Health(t.Context())
				return h.State != "down" && strings.Contains(h.Error, "of 64 partitions: the server was emptied, "+
					"and its recorded sends are lost: the users are unavailable until capper is restarted")
			})
			require.Equal(t, len(others), count(filter(t, s, batchOf("second", others, rolling(1, week))),
				capping.Denied))
			p.stop()
			require.Zero(t, p.allowed.Load())

			config.MustExist = true
			_, err := openInTime(t, config)
			require.ErrorContains(t, err, "set store.redis.create: true to create")
			config.MustExist = false
			again := openTest(t, config)
			require.Contains(t, strings.Join(warningsOf(t, again), "\n"), "created again from the remaining data")
			require.NotZero(t, count(filter(t, again, batchOf("third", own, rolling(1, week))), capping.Allowed))
			require.Equal(t, len(others), count(filter(t, again, batchOf("third", others, rolling(1, week))),
				capping.Denied))
		})
	}
}

// signKey returns the partition's sentinel key.
func (s *Store) signKey(partition int) string { return s.prefixes[partition] + "-sign" }

// A server whose clock was ahead has let logs expire too early.
func TestAClockThatWasAheadMakesUsersUnavailable(t *testing.T) {
	t.Parallel()
	s := openShared(t, func(c *Config) { c.ClockSkew = 250 * time.Millisecond })
	filter(t, s, batchOf("a", []capping.UserID{0, 190}))
	node, key := s.top.Route(0), s.signKey(0)
	text, err := node.Client().Get(t.Context(), key).Result()
	require.NoError(t, err)
	seen, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), time.UnixMilli(int64(seen)), time.Minute)
	ahead := func(by time.Duration) { // what a look wrote while the clock was so much ahead
		later := fmt.Sprint(time.Now().Add(by).UnixMilli())
		require.NoError(t, node.Client().Set(t.Context(), key, later, time.Hour).Err())
		s.fleet.beatSoon()
	}
	ask := func(message string) []capping.Verdict {
		verdicts := make([]capping.Verdict, 2)
		_ = s.Filter(t.Context(), batchOf(message, []capping.UserID{0, 190}), verdicts)
		return verdicts
	}
	ahead(8 * day)
	const aheadBy = `the clock of the server was ahead by (192h0m0s|191h59m\d+s)` // less what passes until it is seen
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		h := s.Health(t.Context())
		require.Equal(c, "degraded", h.State)
		require.Regexp(c, "1 of 64 partitions: "+aheadBy+", so logs may have expired too early", h.Error)
	}, 30*time.Second, 5*time.Millisecond)
	require.Equal(t, []capping.Verdict{{}, {Outcome: capping.Allowed}}, ask("b"))

	config := s.config
	config.MustExist = true
	_, err = openInTime(t, config)
	require.Error(t, err)
	require.Regexp(t, aheadBy, err.Error())
	ahead(2 * time.Second) // waiting heals it as well
	testkit.Eventually(t, func() bool { return ask("c")[0].Outcome == capping.Allowed })
	ahead(8 * day)
	testkit.Eventually(t, func() bool { return ask("d")[0].Outcome == capping.Unavailable })
	again := openTest(t, s.config)
	require.Regexp(t, "store created again from the remaining data: 1 of 65 partitions "+
		`\(the total includes the partition of the store's records\): `+aheadBy,
		strings.Join(warningsOf(t, again), "\n"))
	s.fleet.beatSoon()
	testkit.Eventually(t, func() bool { return ask("e")[0].Outcome == capping.Allowed })
}

// A start takes over the logs of a version without these records, also in an instance that must not create a store.
func TestLogsOfAnOlderVersionAreTakenOver(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	filter(t, s, batchOf("a", []capping.UserID{7}, rolling(1, week)))
	require.NoError(t, s.Close())
	for _, addr := range testcluster.Shared(t) { // as before: the format marker, logs and message ids
		client := admin(t, addr)
		for _, key := range client.Keys(t.Context(), s.config.Namespace+":*").Val() {
			if strings.HasSuffix(key, "-sign") || strings.Contains(key, "{format}:") {
				_ = client.Del(t.Context(), key).Err() // of a replica: its master's
			}
		}
	}
	config := s.config
	config.MustExist = true
	again := openTest(t, config)
	require.Empty(t, warningsOf(t, again))
	require.Equal(t, capping.Denied, filter(t, again, batchOf("b", []capping.UserID{7}, rolling(1, week)))[0].Outcome)
	require.True(t, again.top.Signed())
}

// Replies that are under way when their partition is quarantined are not trusted. The server may have restarted
// before it replied, and have been checked since.
func TestAnswersOnTheirWayAreNotBelievedWhenTheirPartitionIsBarred(t *testing.T) {
	t.Parallel()
	c, between := testcluster.Single(t, testcluster.Options{NodeTimeout: steady}), newProxies(t)
	s := openTest(t, unhurried(Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), dial: between.dial}))
	users := spread(500)
	require.Equal(t, len(users), count(filter(t, s, batchOf("first", users)), capping.Allowed))
	s.fleet.cancel()
	s.fleet.wait.Wait() // nothing but the batch has an answer held back
	x := between.to(c.Addrs[0])
	held := x.holdBack()
	verdicts := make([]capping.Verdict, len(users))
	decided := make(chan error)
	go func() { decided <- s.Filter(background(t, testkit.Patience), batchOf("second", users), verdicts) }()
	<-held.some
	x.hold.Store(nil)
	p := s.keyspace.Partition(users[0])
	require.NoError(t, admin(t, c.Addrs[0]).Del(t.Context(), s.signKey(p)).Err())
	looked(t, s)
	close(held.release)
	require.ErrorContains(t, <-decided, "the server was emptied")
	for i, user := range users {
		want := capping.Allowed
		if s.keyspace.Partition(user) == p {
			want = capping.Unavailable
		}
		require.Equal(t, want, verdicts[i].Outcome, "user %d", user)
	}
}
