//go:build storms

package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/messages"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// The counts equal the sends in the logs under every fault, also when two instances call the same campaign at once,
// retry it after a deadline, and release it.
func TestCountsAreThoseOfTheLogs(t *testing.T) {
	t.Parallel()
	between := newProxies(t)
	f := newField(t, func(c *Config) { c.dial = between.dial })
	named := []string{"kill -9 of a master, failover", "slots moved under load", "SCRIPT FLUSH on all nodes",
		"a full Redis", "slots held half-moved"}
	met, cut := 0, 0
	for i, b := range append(slices.Clone(breakages), wireBreakages(between)...) {
		if cuts(b) {
			cut++
		}
		if !slices.Contains(named, b.name) && (!cuts(b) || cut > 1) { // make torture has them all
			continue
		}
		met++
		t.Run(b.name, func(t *testing.T) {
			f := *f
			f.TB = t
			f.heal()
			both := newBlast(capping.UserID(i)*10_000_000, f.stores[1], f.stores[2])
			both.key.message.ID += b.name
			both.begin(uint64(i))
			f.storm(i, b)
			both.end()
			both.settle(t)
			counted, _ := both.sends(t)
			if !tears(b) {
				require.False(t, counted.AtLeast, "only sends whose slot is half moved cannot be counted")
			}
		})
	}
	require.Equal(t, len(named)+1, met)
}

// A message's counts are marked as lower bounds before the first send that cannot be counted.
func TestCountsAcrossAHalfMovedSlotAreLowerBounds(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{NodeTimeout: 60 * time.Second})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	f := &field{TB: t, cluster: c, stores: []*Store{s}, admins: map[string]*redis.Client{}}
	for _, addr := range c.Addrs {
		f.admins[addr] = admin(t, addr)
	}
	slot := s.keyspace.Slot(0)
	from := s.top.Route(0).Addr()
	to := c.Addrs[slices.IndexFunc(c.Addrs, func(addr string) bool { return addr != from })]
	m := slotMove{f, slot, f.admins[from], f.admins[to]}
	var users []capping.UserID
	for _, first := range inSlot(s, slot) {
		users = append(users, first, first+1, first+2)
	}
	sends := func(id string) messages.Sends {
		t.Helper()
		found, err := s.MessageCounts(t.Context(), capping.Message{ID: id})
		require.NoError(t, err)
		require.Len(t, found, 1)
		return found[0].Sends
	}
	filter(t, s, batchOf("before", users))
	filter(t, s, batchOf("both", users[:100]))
	require.Equal(t, messages.Sends{Recorded: 120}, sends("before"))

	m.begin()
	m.carryHalf()
	verdicts := filter(t, s, batchOf("both", users))
	require.Equal(t, 20, count(verdicts, capping.Allowed))
	require.Equal(t, 100, count(verdicts, capping.Replayed))
	require.Equal(t, messages.Sends{Recorded: 100, AtLeast: true}, sends("both"))
	merge := capping.MergeOf([]capping.Sent{
		{
			User: users[0],
			Entry: capping.Entry{
				At:    capping.InstantOf(time.Now()) - 1000,
				Token: capping.Message{ID: "import"}.Token(),
			},
		},
		{
			User: users[50],
			Entry: capping.Entry{
				At:    capping.InstantOf(time.Now()) - 1000,
				Token: capping.Message{ID: "import"}.Token(),
			},
		},
	})
	merge.Messages, merge.Counted, merge.Retention = []capping.Message{{ID: "import"}}, true, time.Hour
	require.NoError(t, s.Merge(t.Context(), merge, make([]capping.Merged, 2)))
	require.Equal(t, messages.Sends{AtLeast: true}, sends("import"))
	release := func(id string) {
		t.Helper()
		require.NoError(
			t,
			s.Release(t.Context(), capping.Message{ID: id}.Token(), 0, users, make([]capping.Released, len(users))),
		)
	}
	release("before")
	require.Equal(t, messages.Sends{Recorded: 120, AtLeast: true}, sends("before"))
	release("never sent")
	m.end()
	require.False(t, f.admins[to].Exists(t.Context(), string(script.AppendCountsKey(nil, s.prefixes[0],
		capping.Message{ID: "never sent"}.Token()))).Val() > 0, "a release makes no counts")
	filter(t, s, batchOf("after", users))
	require.Equal(t, messages.Sends{Recorded: 120}, sends("after"))
	require.Positive(t, f.admins[to].PTTL(t.Context(), string(script.AppendCountsKey(nil, s.prefixes[0],
		capping.Message{ID: "import"}.Token()))).Val(), "marked counts expire")
	for _, log := range readLogs(t, s) {
		require.NotEmpty(t, log)
	}
}

// Counts outlive the logs, and few calls set their TTL.
func TestCountsOutliveTheLogs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ retention, keep time.Duration }{
		{7 * 24 * time.Hour, 7 * 24 * time.Hour}, {time.Second, messages.MinKeep},
		{365 * 24 * time.Hour, messages.MaxKeep},
	} {
		c := newClock()
		s := openShared(t, func(config *Config) { config.Clock = c.now })
		client, users := owner(t, s, 1), everyNth(200, 1)
		key := string(script.AppendCountsKey(nil, s.prefixes[0], capping.Message{ID: "m"}.Token()))
		refreshed := 0
		var ends time.Time
		for i := range 60 {
			c.advance(time.Hour)
			// so that a call that sets it stands out
			require.NoError(t, client.PExpire(t.Context(), key, 10*time.Minute).Err())
			b := batchOf("m", users[:capping.BulkUsers+i])
			b.Retention = test.retention
			filter(t, s, b)
			left := client.PTTL(t.Context(), key).Val()
			require.Positive(t, left)
			if left > time.Hour {
				refreshed, ends = refreshed+1, c.now().Add(left)
			}
			require.False(t, ends.Before(c.now().Add(test.keep)), "after %d hours", i)
			require.False(t, ends.After(c.now().Add(test.keep+8*time.Hour)), "after %d hours", i)
		}
		require.LessOrEqual(t, refreshed, 10, "once in six hours")
		require.GreaterOrEqual(t, refreshed, 8)
	}
}

// When one shard is away, a read of counts returns an error and no partial sum.
func TestCountsOfSomeShardsAreNone(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{NodeTimeout: 60 * time.Second})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	message := capping.Message{ID: "m"}
	filter(t, s, batchOf("m", spread(1000)))
	require.NoError(t, s.AddAnswers(t.Context(), []messages.Delta{answersOf(message, 1000)}))
	found, err := s.MessageCounts(t.Context(), message)
	require.NoError(t, err)
	require.Equal(t, int64(1000), found[0].Recorded)
	require.NoError(t, c.Pause(c.Addrs[0]))
	found, err = s.MessageCounts(background(t, time.Second), message)
	require.ErrorContains(t, err, "the counts of messages are undecided")
	require.Empty(t, found)
	for _, order := range []messages.Order{messages.ByLast, messages.ByAsked} {
		listed, err := s.ListMessages(background(t, time.Second), messages.Query{Order: order, Max: 10})
		require.ErrorContains(t, err, "the counts of messages are undecided")
		require.Empty(t, listed)
	}

	// What is on the other shards is added, and not named as what is left.
	var deltas []messages.Delta
	var left *messages.NotAddedError
	tries := 0
	testkit.Eventually(t, func() bool { // on a busy machine the others may be late as well
		tries, deltas = tries+1, nil
		for i := range 300 {
			deltas = append(deltas, answersOf(capping.Message{ID: fmt.Sprint("m", tries, "-", i)}, 100))
		}
		require.ErrorAs(t, s.AddAnswers(background(t, time.Second), deltas), &left)
		require.Greater(t, len(left.Deltas), 50)
		return len(left.Deltas) < 200
	})
	require.NoError(t, c.Resume(c.Addrs[0]))
	require.NoError(t, s.AddAnswers(background(t, testkit.Patience), left.Deltas))
	for _, delta := range deltas {
		found, err := s.MessageCounts(t.Context(), delta.Message)
		require.NoError(t, err)
		require.Positive(t, found[0].Calls)
		if !slices.ContainsFunc(left.Deltas, func(d messages.Delta) bool { return d.Key == delta.Key }) {
			require.Equal(t, int64(1), found[0].Calls)
		}
	}
}

// Answers whose reply is lost are retried and added once.
func TestAnswersAreAddedOnceWhenConnectionsBreak(t *testing.T) {
	t.Parallel()
	between := newProxies(t)
	s := openShared(t, func(c *Config) { c.dial, c.AttemptTimeout = between.dial, 200*time.Millisecond })
	message := capping.Message{ID: "m"}
	sure, open := int64(0), int64(0)
	for i := range 60 {
		between.each(func(x *proxy) { x.cut.Store(int64(i % 2)) })
		healed := time.AfterFunc(time.Duration(i)*time.Millisecond,
			func() { between.each(func(x *proxy) { x.cut.Store(cutNever) }) })
		if s.AddAnswers(background(t, 5*time.Second), []messages.Delta{answersOf(message, 100)}) == nil {
			sure++
		} else {
			open++
		}
		healed.Stop()
	}
	between.each(func(x *proxy) { x.cut.Store(cutNever) })
	require.Positive(t, between.cuts())
	found, err := s.MessageCounts(t.Context(), message)
	require.NoError(t, err)
	t.Logf("%d added, %d perhaps, counted %d", sure, open, found[0].Calls)
	require.GreaterOrEqual(t, found[0].Calls, sure)
	require.LessOrEqual(t, found[0].Calls, sure+open)
	require.Positive(t, sure)
}
