package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/campaign"
	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// blast is one campaign that two stores are asked for at once, again and again, and gives back
// what it took: beside a storm, so that it meets the storm's fault.
type blast struct {
	key     identity
	users   []capping.UserID
	stores  []*Store
	stop    chan struct{}
	running sync.WaitGroup
}

func newBlast(base capping.UserID, stores ...*Store) *blast {
	b := &blast{
		key:    identity{capping.Message{Namespace: "growth", ID: "blast"}, 7},
		stores: stores, stop: make(chan struct{}),
	}
	for i := range capping.UserID(12_000) {
		b.users = append(b.users, base+500_000_000+3*i)
	}
	return b
}

// begin has each store asked by two callers, of whom one gives back now and then.
func (b *blast) begin(seed uint64) {
	for i := range 2 * len(b.stores) {
		rng, s := rand.New(rand.NewPCG(seed, uint64(i))), b.stores[i%len(b.stores)]
		b.running.Go(func() {
			pace := time.NewTicker(15 * time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-b.stop:
					return
				case <-pace.C:
				}
				part := b.users[rng.IntN(len(b.users)-600):][:capping.BulkUsers+rng.IntN(500)]
				patience := time.Duration(200+rng.IntN(1000)) * time.Millisecond
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				if i >= len(b.stores) && rng.IntN(3) == 0 {
					channel := []capping.Channel{0, b.key.channel}[rng.IntN(2)]
					_ = s.Release(ctx, b.key.message.Token(), channel, part, make([]capping.Released, len(part)))
				} else {
					_ = s.Filter(ctx, b.key.batch(part), make([]capping.Verdict, len(part)))
				}
				cancel()
			}
		})
	}
}

func (b *blast) end() {
	close(b.stop)
	b.running.Wait()
}

// sends is what is counted, and recorded how many are in the logs.
func (b *blast) sends(t testing.TB) (counted campaign.Sends, recorded int64) {
	t.Helper()
	counted, recorded, err := b.read(t.Context())
	require.NoError(t, err)
	return counted, recorded
}

func (b *blast) read(ctx context.Context) (counted campaign.Sends, recorded int64, err error) {
	s := b.stores[0]
	campaigns, err := s.Campaign(ctx, b.key.message)
	if err != nil {
		return counted, 0, err
	}
	for _, one := range campaigns {
		counted.Recorded += one.Recorded
		counted.Released += one.Released
		counted.AtLeast = counted.AtLeast || one.AtLeast
	}
	for first := s.keyspace.Bucket(b.users[0]); first <= s.keyspace.Bucket(b.users[len(b.users)-1]); first++ {
		partition, key, _ := s.key(first * s.keyspace.BucketSize)
		fields, err := s.top.Route(partition).Client().HGetAll(ctx, key).Result()
		if err != nil {
			return counted, 0, err
		}
		for field, log := range fields {
			for _, e := range capping.Log(log).Entries() {
				if field != "" && e.Token == b.key.message.Token() {
					recorded++
				}
			}
		}
	}
	return counted, recorded, nil
}

// settle asks until everybody has the send, then gives all back: the counts have to follow.
func (b *blast) settle(t testing.TB) {
	t.Helper()
	var counted campaign.Sends
	var recorded int64
	require.Eventually(t, func() bool { // a call that was given up may come late
		var err error
		counted, recorded, err = b.read(context.Background())
		return err == nil && (counted.AtLeast || counted.Recorded-counted.Released == recorded)
	}, time.Minute, 100*time.Millisecond, "counted are not those of the logs")
	t.Logf("counted %+v, in the logs are %d", counted, recorded)
	for part := range slices.Chunk(b.users, 3000) {
		verdicts := make([]capping.Verdict, len(part))
		require.NoError(t, b.stores[0].Filter(background(t, testkit.Patience), b.key.batch(part), verdicts))
	}
	counted, recorded = b.sends(t)
	require.EqualValues(t, len(b.users), recorded)
	b.exact(t, counted, recorded)
	released := make([]capping.Released, len(b.users))
	require.NoError(t, b.stores[1].Release(background(t, testkit.Patience), b.key.message.Token(), 0, b.users,
		released))
	counted, recorded = b.sends(t)
	require.Zero(t, recorded)
	b.exact(t, counted, recorded)
}

// exact requires that the counts are those of the logs, unless they say that they are lower bounds.
func (b *blast) exact(t testing.TB, counted campaign.Sends, recorded int64) {
	t.Helper()
	if !counted.AtLeast {
		require.Equal(t, recorded, counted.Recorded-counted.Released)
	}
}

// Whatever breaks, what is counted is what the logs hold: also where the same campaign is
// asked for by two instances at once, asked again after its time was up, and given back.
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

// The counts of a message say that they are lower bounds from before the first send on that could not be counted.
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
	sends := func(id string) campaign.Sends {
		t.Helper()
		found, err := s.Campaign(t.Context(), capping.Message{ID: id})
		require.NoError(t, err)
		require.Len(t, found, 1)
		return found[0].Sends
	}
	filter(t, s, batchOf("before", users))
	filter(t, s, batchOf("both", users[:100]))
	require.Equal(t, campaign.Sends{Recorded: 120}, sends("before"))

	m.begin()
	m.carryHalf()
	verdicts := filter(t, s, batchOf("both", users))
	require.Equal(t, 20, count(verdicts, capping.Allowed))
	require.Equal(t, 100, count(verdicts, capping.Replayed))
	require.Equal(t, campaign.Sends{Recorded: 100, AtLeast: true}, sends("both"))
	merge := capping.MergeOf([]capping.Sent{
		{User: users[0], Entry: capping.Entry{At: capping.InstantOf(time.Now()) - 1000, Token: capping.Message{ID: "import"}.Token()}},
		{User: users[50], Entry: capping.Entry{At: capping.InstantOf(time.Now()) - 1000, Token: capping.Message{ID: "import"}.Token()}},
	})
	merge.Messages, merge.Counted, merge.Retention = []capping.Message{{ID: "import"}}, true, time.Hour
	require.NoError(t, s.Merge(t.Context(), merge, make([]capping.Merged, 2)))
	require.Equal(t, campaign.Sends{AtLeast: true}, sends("import"))
	release := func(id string) {
		t.Helper()
		require.NoError(t, s.Release(t.Context(), capping.Message{ID: id}.Token(), 0, users, make([]capping.Released, len(users))))
	}
	release("before")
	require.Equal(t, campaign.Sends{Recorded: 120, AtLeast: true}, sends("before"))
	release("never sent")
	m.end()
	require.False(t, f.admins[to].Exists(t.Context(), string(script.AppendCountsKey(nil, s.prefixes[0],
		capping.Message{ID: "never sent"}.Token()))).Val() > 0, "a release makes no counts")
	filter(t, s, batchOf("after", users))
	require.Equal(t, campaign.Sends{Recorded: 120}, sends("after"))
	require.Positive(t, f.admins[to].PTTL(t.Context(), string(script.AppendCountsKey(nil, s.prefixes[0],
		capping.Message{ID: "import"}.Token()))).Val(), "marked counts expire")
	for _, log := range readLogs(t, s) {
		require.NotEmpty(t, log)
	}
}

// What a script counts wrongly is seen by those who look.
func TestWrongCountsAreFound(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"everybody who was asked":      {"new = new + m - 2", "new = new + 2 * count"},
		"the last bucket alone":        {"new = new + m - 2", "new = m - 2"},
		"nobody":                       {"new = new + m - 2", "new = 0"},
		"calls":                        {"new = new / 2", "new = math.min(new, 1)"},
		"the first call of the user's": {"if new > 0 or", "if"},
		"into the hours":               {"(least + 6 - untl) *", "1 + (least + 6 - untl) *"},
		"right":                        {"new = new / 2", "new = 0.5 * new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShared(t, nil)
			require.Contains(t, s.scripts.Filter.Source, change[0])
			changed := script.New(strings.ReplaceAll(s.scripts.Filter.Source, change[0], change[1]))
			for _, n := range s.top.Nodes() {
				require.NoError(t, admin(t, n.Addr()).ScriptLoad(t.Context(), changed.Source).Err())
			}
			s.scripts.Filter = changed
			b := newBlast(0, s)
			filter(t, s, b.key.batch(b.users[:500]))
			filter(t, s, b.key.batch(b.users[:3000]))
			filter(t, s, b.key.batch(b.users[:3000]))
			counted, recorded := b.sends(t)
			require.EqualValues(t, 3000, recorded)
			require.Equal(t, name == "right", counted.Recorded == recorded, "counted %+v", counted)
		})
	}
}

// Counts outlive the logs, and their TTL is not set by every call.
func TestCountsOutliveTheLogs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ retention, keep time.Duration }{
		{7 * 24 * time.Hour, 7 * 24 * time.Hour}, {time.Second, campaign.MinKeep},
		{365 * 24 * time.Hour, campaign.MaxKeep},
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

// A shard that is away is an error, not a count of the others.
func TestCountsOfSomeShardsAreNone(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{NodeTimeout: 60 * time.Second})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	message := capping.Message{ID: "m"}
	filter(t, s, batchOf("m", spread(1000)))
	require.NoError(t, s.AddAnswers(t.Context(), []campaign.Delta{answersOf(message, 1000)}))
	found, err := s.Campaign(t.Context(), message)
	require.NoError(t, err)
	require.Equal(t, int64(1000), found[0].Recorded)
	require.NoError(t, c.Pause(c.Addrs[0]))
	found, err = s.Campaign(background(t, time.Second), message)
	require.ErrorContains(t, err, "what is counted by message is undecided")
	require.Empty(t, found)
	listed, _, err := s.Campaigns(background(t, time.Second), 0, 10, nil)
	require.ErrorContains(t, err, "what is counted by message is undecided")
	require.Empty(t, listed)

	// What is on the other shards is added, and not named as what is left.
	var deltas []campaign.Delta
	var left *campaign.NotAddedError
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
		found, err := s.Campaign(t.Context(), delta.Message)
		require.NoError(t, err)
		require.Positive(t, found[0].Calls)
		if !slices.ContainsFunc(left.Deltas, func(d campaign.Delta) bool { return d.Key == delta.Key }) {
			require.Equal(t, int64(1), found[0].Calls)
		}
	}
}

// answersOf is answers of one call about the message.
func answersOf(message capping.Message, asked int64) campaign.Delta {
	at := capping.InstantOf(time.Now())
	return campaign.Delta{
		Key: campaign.Key{Message: message, Channel: 1}, Answers: campaign.Answers{Calls: 1, Asked: asked, First: at,
			Last: at},
	}
}

// Answers whose own answer is lost are asked for again, and added once.
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
		if s.AddAnswers(background(t, 5*time.Second), []campaign.Delta{answersOf(message, 100)}) == nil {
			sure++
		} else {
			open++
		}
		healed.Stop()
	}
	between.each(func(x *proxy) { x.cut.Store(cutNever) })
	require.Positive(t, between.cuts())
	found, err := s.Campaign(t.Context(), message)
	require.NoError(t, err)
	t.Logf("%d added, %d perhaps, counted %d", sure, open, found[0].Calls)
	require.GreaterOrEqual(t, found[0].Calls, sure)
	require.LessOrEqual(t, found[0].Calls, sure+open)
	require.Positive(t, sure)
}

// Names come and go with configurations: what is counted of a message stays bounded.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	message := capping.Message{ID: "m"}
	for i := range 60 {
		delta := answersOf(message, 100)
		delta.Denied = map[string]int64{"daily": 1}
		for j := range 100 {
			delta.Denied[strings.Repeat("x", i+1)+string(rune('a'+j%26))+strings.Repeat("y", j/26)] = 1
		}
		delta.Configs = []string{strings.Repeat("v", i+1), strings.Repeat("w", i+1)}
		require.NoError(t, s.AddAnswers(t.Context(), []campaign.Delta{delta}))
	}
	found, err := s.Campaign(t.Context(), message)
	require.NoError(t, err)
	require.Less(t, len(found[0].Denied), 4300)
	require.Equal(t, int64(60), found[0].Denied["daily"], "what is known goes on")
	require.Equal(t, int64(6000), found[0].Asked)
	require.Len(t, found[0].Configs, 100)
	require.Equal(t, "v", found[0].Configs[0])
}
