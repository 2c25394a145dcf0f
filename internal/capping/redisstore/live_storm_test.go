//go:build storms

package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/live"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// decide decides one user like capping.Capper: a member of the set is denied, and an outdated user is looked up again.
func decide(ctx context.Context, s *Store, message string, user capping.UserID) (allowed bool, err error) {
	verdicts := make([]capping.Verdict, 1)
	b := batchOf(message, []capping.UserID{user})
	suppressed := func() bool {
		change, ok := s.Lists().Of(optedOut, user)
		return ok && change.Kind == live.Added
	}
	b.Known = versionsOf(s)
	if suppressed() {
		return false, nil
	}
	err = s.Filter(ctx, b, verdicts)
	if verdicts[0].Outdated {
		since := verdicts[0].FreesAt
		if err := s.Renew(ctx, b.Users); err != nil {
			return false, err
		}
		if suppressed() {
			return false, nil
		}
		verdicts[0], b.Known = capping.Verdict{}, nil
		if since != capping.Never {
			b.Since = since
		}
		err = s.Filter(ctx, b, verdicts)
	}
	o := verdicts[0].Outcome
	return o == capping.Allowed || o == capping.Replayed, err
}

// listStorm changes a set through one store and decides through another, and notes every user who is allowed after the
// change was acknowledged.
type listStorm struct {
	stores   []*Store
	stop     atomic.Bool
	wait     sync.WaitGroup
	mu       sync.Mutex
	acked    map[capping.UserID]bool
	wrong    []capping.UserID
	unstored int
	decided  int
	latest   error
}

func newListStorm(stores ...*Store) *listStorm {
	l := &listStorm{stores: stores, acked: map[capping.UserID]bool{}}
	for i := range 4 {
		l.wait.Go(func() { l.work(rand.New(rand.NewPCG(uint64(i), 7)), i) })
	}
	return l
}

func (l *listStorm) work(rng *rand.Rand, worker int) {
	var mine []capping.UserID
	for n := 0; !l.stop.Load(); n++ {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		user := capping.UserID(rng.Uint32())&^3 | capping.UserID(worker)
		from, to := l.stores[rng.IntN(len(l.stores))], l.stores[rng.IntN(len(l.stores))]
		stored, err := from.Change(ctx, &live.Batch{Set: optedOut, By: "crm", Add: []capping.UserID{user}})
		acknowledged := err == nil && len(stored.Unstored) == 0
		if acknowledged {
			mine = append(mine, user)
		}
		stranger := capping.UserID(rng.Uint32())&^3 | capping.UserID(worker)
		for _, asked := range append(slices.Clone(mine[max(0, len(mine)-2):]), stranger) {
			must := slices.Contains(mine, asked)
			allowed, _ := decide(ctx, to, fmt.Sprint("m-", worker, n), asked)
			l.mu.Lock()
			l.decided++
			if allowed && must {
				l.wrong = append(l.wrong, asked)
			}
			l.mu.Unlock()
		}
		l.mu.Lock()
		if acknowledged {
			l.acked[user] = true
		} else {
			l.unstored, l.latest = l.unstored+1, err
		}
		l.mu.Unlock()
		cancel()
	}
}

func (l *listStorm) decisions(t testing.TB, n int) {
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.acked)
	}
	want := count() + n
	testkit.Eventually(t, func() bool { return count() >= want })
}

// verify ends the storm and requires that no acknowledged change was ignored or lost.
func (l *listStorm) verify(t testing.TB, open func() *Store) {
	t.Helper()
	l.stop.Store(true)
	l.wait.Wait()
	t.Logf("%d changes, %d not stored (%v), %d decisions", len(l.acked), l.unstored, l.latest, l.decided)
	require.Empty(t, l.wrong, "users who were allowed after their change was acknowledged")
	for _, s := range append(slices.Clone(l.stores), open()) {
		require.NoError(t, s.Renew(t.Context(), nil))
		for user := range l.acked {
			change, ok := s.Lists().Of(optedOut, user)
			require.True(t, ok && change.Kind == live.Added, "user %d", user)
		}
	}
}

// No acknowledged change is ignored or lost while nodes break and slots move.
func TestAcknowledgedChangesCountWhateverBreaks(t *testing.T) {
	t.Parallel()
	f := newField(t, nil)
	named := []string{"kill -9 of a master, failover", "SIGSTOP longer than the node time-out",
		"SCRIPT FLUSH on all nodes",
		"CLUSTER FAILOVER", "slots moved under load", "slots held half-moved", "a full Redis"}
	met := 0
	for i, b := range breakages {
		if !slices.Contains(named, b.name) {
			continue
		}
		met++
		t.Run(b.name, func(t *testing.T) {
			f := *f
			f.TB = t
			f.heal()
			lists := newListStorm(f.stores[1], f.stores[2])
			lists.decisions(t, 200)
			f.stormAt(capping.UserID(i+1)*100_000_000, i, b)
			lists.decisions(t, 200)
			lists.verify(t, func() *Store { return openPatiently(t, f.stores[1].config) })
		})
	}
	require.Equal(t, len(named), met)
}

// While the keys of a slot are on two nodes, an outdated instance still decides nobody.
func TestChangesAcrossAHalfMovedSlot(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{NodeTimeout: 60 * time.Second})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	other := openTest(t, s.config)
	f := &field{TB: t, cluster: c, stores: []*Store{s}, admins: map[string]*redis.Client{}}
	for _, addr := range c.Addrs {
		f.admins[addr] = admin(t, addr)
	}
	slot := s.keyspace.Slot(0)
	from := s.top.Route(0).Addr()
	to := c.Addrs[slices.IndexFunc(c.Addrs, func(addr string) bool { return addr != from })]
	m := slotMove{f, slot, f.admins[from], f.admins[to]}
	users := inPartition(s, 0, 19_000)
	users = slices.DeleteFunc(users, func(u capping.UserID) bool { return u%19 != 0 })
	filter(t, s, batchOf("before", users))
	changed(t, other, adding(users[0]))
	quietLive(t, s, other)
	require.NoError(t, s.Renew(t.Context(), users))

	m.begin()
	m.carryHalf()
	for round := range 3 {
		message := fmt.Sprint("round-", round)
		require.Equal(t, len(users), count(filter(t, s, known(s, message, users)), capping.Allowed))
		changed(t, other, adding(users[round+1]))
		stale := known(s, "stale-"+message, users)
		require.Equal(t, len(users), outdated(filter(t, s, stale)))
		require.NoError(t, s.Renew(t.Context(), users))
		require.Equal(t, round+2, len(kindsOf(s, users)))
		require.Equal(t, len(users), count(filter(t, s, known(s, "stale-"+message, users)), capping.Allowed))
		for range 2 { // the log may be on either node
			m.carry(1)
		}
	}
	m.end()
	require.Zero(t, outdated(filter(t, s, known(s, "after", users))))
	changed(t, other, adding(users[9]))
	require.Equal(t, len(users), outdated(filter(t, s, known(s, "later", users))))
}

// An emptied server makes its users unavailable and stores no change. Once the loss is accepted, an instance that still
// runs stores the changes that it knows again.
func TestChangesOutliveAnEmptiedServer(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: steady})
	s := openTest(t, Config{Addrs: c.Addrs})
	users := spread(1000)
	changed(t, s, adding(users[:600]...))
	changed(t, s, live.Batch{Remove: users[500:]})
	require.NoError(t, s.Free(t.Context(), map[string]capping.Instant{"else": 5}))
	want := kindsOf(s, users)
	require.Len(t, want, len(users))
	for _, addr := range c.Addrs[:3] {
		require.NoError(t, admin(t, addr).FlushAll(t.Context()).Err())
	}
	looked(t, s)
	stored, err := s.Change(t.Context(), &live.Batch{Set: optedOut, Add: users})
	require.Error(t, err)
	require.Equal(t, users, stored.Unstored)
	require.Equal(t, len(users), count(firstVerdicts(s, users), capping.Unavailable))

	again := openTest(t, s.config) // its start accepts the loss
	decidesNobodyOf(t, again, users[:500])
	testkit.Eventually(t, func() bool {
		looked(t, s)
		return len(kindsOf(again, users)) == len(users)
	}, "the changes are stored again")
	require.Equal(t, want, kindsOf(again, users))
	testkit.Eventually(t, func() bool { return again.Lists().Freed("else") == 5 }, "freed instants too")
	later := openTest(t, s.config)
	testkit.Eventually(t, func() bool { return s.live.restorations() == "" && later.live.restorations() == "" })
	require.Equal(t, want, kindsOf(later, users))
	changed(t, s, adding(users...))
	require.NoError(t, later.Renew(t.Context(), nil))
	require.Equal(t, live.Added, kindsOf(later, users)[users[700]])
}

// decidesNobodyOf asks the store for users who were suppressed before the loss, until the changes are restored. Nobody
// may be allowed.
func decidesNobodyOf(t *testing.T, s *Store, users []capping.UserID) {
	t.Helper()
	asked := 0
	for began := time.Now(); s.live.restorations() != "" || asked == 0; {
		require.Less(t, time.Since(began), 2*time.Minute, s.live.restorations())
		for _, user := range []capping.UserID{users[asked%len(users)], users[(7*asked)%len(users)]} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			allowed, _ := decide(ctx, s, fmt.Sprint("restored-", asked), user)
			cancel()
			require.False(t, allowed, "user %d in decision %d", user, asked)
		}
		asked++
	}
	t.Logf("%d decisions during the restoration", 2*asked)
}

// A restarted instance decides nobody whom a set could suppress until the other instances have stored their changes
// again, whether one master or all of them came back empty.
func TestRestartsOverEmptiedServersWaitForTheOthers(t *testing.T) {
	t.Parallel()
	for _, emptied := range []int{1, 3} {
		t.Run(fmt.Sprint(emptied), func(t *testing.T) {
			t.Parallel()
			c := testcluster.Start(t, testcluster.Options{NodeTimeout: steady})
			s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
			users := spread(1000)
			changed(t, s, adding(users...))
			for _, addr := range c.Addrs[:emptied] {
				require.NoError(t, admin(t, addr).FlushAll(t.Context()).Err())
			}
			looked(t, s)
			again := openTest(t, s.config)
			require.NotEmpty(t, again.live.restorations())
			require.Contains(t, again.Health(t.Context()).Error, "the changes of sets are being restored")
			decidesNobodyOf(t, again, users)
			require.NoError(t, again.Renew(t.Context(), nil))
			require.Equal(t, len(users), len(kindsOf(again, users)))
			decidesNobodyOf(t, again, users)
			stranger := capping.UserID(4_000_000_000)
			allowed, err := decide(t.Context(), again, "after", stranger)
			require.NoError(t, err)
			require.True(t, allowed)
		})
	}
}

// A restoration ends when every instance of the list has confirmed, and waits for one that has not. A new store has
// no restoration.
func TestARestorationWaitsForEveryInstance(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	require.Empty(t, s.live.restorations())
	client, list := admin(t, c.Addrs[0]), s.marker.InstancesKey()
	require.NoError(t, client.HSet(t.Context(), list, "ghost", "99999999999999 {\"restores\":\"yes\"}").Err())
	require.Empty(t, s.live.begin(t.Context(), []int{3, 5}))
	user := inPartition(s, 3, 1)[0]
	waits := func() bool { return strings.Contains(s.live.restorations(), "waiting for ghost") }
	testkit.Eventually(t, func() bool {
		beat(t, s)
		return waits()
	})
	require.Contains(t, s.live.restorations(), "2 of 64 partitions")
	_, err := decide(t.Context(), s, "m", user)
	require.ErrorContains(t, err, "being restored after an accepted loss")
	_, err = s.Change(t.Context(), &live.Batch{Set: optedOut, Add: []capping.UserID{user}})
	require.ErrorContains(t, err, "being restored after an accepted loss")
	allowed, err := decide(t.Context(), s, "m", inPartition(s, 4, 1)[0])
	require.NoError(t, err)
	require.True(t, allowed)
	require.True(t, waits())
	require.NoError(t, client.HDel(t.Context(), list, "ghost").Err())
	testkit.Eventually(t, func() bool {
		beat(t, s)
		return s.live.restorations() == ""
	})
	testkit.Eventually(t, func() bool {
		allowed, err := decide(t.Context(), s, "m2", user)
		return err == nil && !allowed // the change that was answered with an error is in the log
	})
}

func firstVerdicts(s *Store, users []capping.UserID) []capping.Verdict {
	verdicts := make([]capping.Verdict, len(users))
	_ = s.Filter(context.Background(), batchOf("m", users), verdicts)
	return verdicts
}

// A record that a failover lost although an instance had read it is noticed, even when other records have its number.
func TestALostRecordIsNoticed(t *testing.T) {
	t.Parallel()
	a, b := twoStores(t, nil)
	quietLive(t, a, b)
	client, key := clientOf(t, a, 0), liveKey(a, 0)
	for _, later := range []int{0, 1, 5} {
		changed(t, a, adding(1))
		require.NoError(t, b.Renew(t.Context(), nil))
		copied, err := client.HGetAll(t.Context(), key).Result()
		require.NoError(t, err)
		lost := capping.UserID(2 + 10*later)
		changed(t, a, adding(lost))
		require.NoError(t, a.Renew(t.Context(), nil))
		require.NoError(t, client.Del(t.Context(), key).Err()) // the failover
		for field, value := range copied {
			require.NoError(t, client.HSet(t.Context(), key, field, value).Err())
		}
		for i := range later {
			changed(t, b, adding(lost+1+capping.UserID(i)))
		}
		require.Equal(t, 1, outdated(filter(t, a, known(a, fmt.Sprint("m-", later), []capping.UserID{1}))))
		require.NoError(t, a.Renew(t.Context(), nil))
		require.NoError(t, b.Renew(t.Context(), nil))
		for _, s := range []*Store{a, b} {
			for i := range later + 1 {
				user := lost + capping.UserID(i)
				require.Equal(t, live.Added, kindsOf(s, []capping.UserID{user})[user])
			}
		}
		require.Equal(t, versionsOf(a), versionsOf(b))
	}
}

// Two instances change, pack and read the same logs at the same time.
func TestPackingBesideChanges(t *testing.T) {
	t.Parallel()
	a, b := twoStores(t, nil)
	users := inPartition(a, 3, 4000)
	var wait sync.WaitGroup
	for i, s := range []*Store{a, b} {
		for k := range 4 {
			wait.Go(func() {
				for n := 4*i + k; n < len(users); n += 8 {
					one := &live.Batch{Set: optedOut, By: fmt.Sprint(k), Add: users[n : n+1]}
					_, err := s.Change(context.Background(), one)
					if err != nil {
						t.Error(err)
						return
					}
					if n%40 == 0 {
						if err := s.live.compact(context.Background(), 3, nil); err != nil {
							t.Log(err)
						}
					}
				}
			})
		}
	}
	wait.Wait()
	later := openTest(t, a.config)
	for _, s := range []*Store{a, b, later} {
		require.NoError(t, s.Renew(t.Context(), nil))
		require.Equal(t, len(users), s.Lists().Len(optedOut))
	}
	fields, err := clientOf(t, a, 3).HLen(t.Context(), liveKey(a, 3)).Result()
	require.NoError(t, err)
	require.Less(t, fields, int64(400))
}

// TestCostOfChanges measures changes of one user in turn and of 100,000 at once: time, Redis CPU and memory.
// CAPPER_BENCH_FACTOR scales the million of users.
func TestCostOfChanges(t *testing.T) {
	b := newBench(t)
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: time.Minute, Settings: operated})
	s := openTest(t, Config{Addrs: c.Addrs})
	n := b.scaled(1_000_000, 20_000)
	rng := rand.New(rand.NewPCG(3, 4))
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = capping.UserID(rng.Uint32())
	}
	cpu := func() (seconds float64) {
		for _, addr := range c.Addrs[:3] {
			seconds += redisCPU(t, admin(t, addr))
		}
		return seconds
	}
	memory := func() (bytes int64) {
		for p := range s.keyspace.Partitions {
			used, err := clientOf(t, s, p).MemoryUsage(t.Context(), liveKey(s, p), 0).Result()
			if err == nil {
				bytes += used
			}
		}
		return bytes
	}
	pass := func(name string, users []capping.UserID, size, callers int) {
		took := make([]time.Duration, 0, len(users)/size+1)
		var mu sync.Mutex
		var wait sync.WaitGroup
		work := make(chan []capping.UserID)
		r0, began := cpu(), time.Now()
		for range callers {
			wait.Go(func() {
				for part := range work {
					at := time.Now()
					_, err := s.Change(context.Background(), &live.Batch{Set: name, By: "crm", Add: part})
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					took = append(took, time.Since(at))
					mu.Unlock()
				}
			})
		}
		for part := range slices.Chunk(users, size) {
			part = slices.Clone(part)
			slices.Sort(part)
			work <- slices.Compact(part)
		}
		close(work)
		wait.Wait()
		elapsed, used := time.Since(began), cpu()-r0
		slices.Sort(took)
		before := memory()
		testkit.Eventually(t, func() bool { return !slices.Contains(s.live.loads(), true) })
		for p := range s.keyspace.Partitions {
			require.NoError(t, s.live.compact(t.Context(), p, nil))
		}
		after := memory()
		changes := float64(s.Lists().Len(name))
		t.Logf("%s: %.0f changes in %v, %.1f µs of Redis CPU a change, calls of %d users: median %v, p99 %v, "+
			"longest %v; %.1f bytes a change, %.1f when compacted", name, changes, elapsed.Round(time.Millisecond),
			used/changes*1e6, size, took[len(took)/2], took[len(took)*99/100], took[len(took)-1],
			float64(before)/changes, float64(after)/changes)
		if changes > 900_000 { // the records that are not packed yet weigh more among few
			require.LessOrEqual(t, float64(before)/changes, 40.0)
		}
		require.LessOrEqual(t, float64(after)/changes, 40.0)
		for p := range s.keyspace.Partitions {
			require.NoError(t, clientOf(t, s, p).Del(t.Context(), liveKey(s, p)).Err())
		}
		require.NoError(t, s.Close())
		s = openTest(t, s.config)
	}
	pass("one by one, one caller", users[:min(n, 5000)], 1, 1)
	pass("one by one", users, 1, 64)
	pass("at once", users[:min(n, 100_000)], 100_000, 1)
	pass("ten at once", users, 100_000, 1)
	slices.Sort(users)
	pass("neighbours", everyNth(n, 1), 100_000, 1)
}

// loads reports for each log whether it is being packed.
func (l *liveLogs) loads() (packing []bool) {
	for p := range l.logs {
		packing = append(packing, l.logs[p].packing.Load())
	}
	return packing
}

// TestCostOfTheCheck measures decisions without a check, with a check and no changes, and with 1 % of the users
// changed, in turns. CAPPER_BENCH_FACTOR scales the populations.
func TestCostOfTheCheck(t *testing.T) {
	b := newBench(t)
	b.clock = newClock()
	type trial struct {
		name  string
		store *Store
		redis *redis.Client
		check bool
	}
	var trials []trial
	for _, name := range []string{"no check", "no changes", "1 % changed"} {
		c := testcluster.Single(t, testcluster.Options{Settings: benchSettings})
		s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Clock: b.clock.now})
		trials = append(trials, trial{name, s, admin(t, c.Addrs[0]), name != "no check"})
	}
	spread := everyNth(b.scaled(400_000, 20_000), 27)
	dense := everyNth(b.scaled(1_000_000, 20_000), 1)
	for _, tr := range trials {
		b.fill(tr.store, dense, shared)
		b.fill(tr.store, spread, shared)
	}
	last := trials[2].store
	some := slices.DeleteFunc(slices.Clone(dense), func(u capping.UserID) bool { return u%100 != 0 })
	for part := range slices.Chunk(some, 100) {
		changed(t, last, adding(part...))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	type work struct {
		name  string
		users func(round int) []capping.UserID
		size  int
	}
	order := slices.Clone(dense)
	for _, w := range []work{
		{"blast, calls of 10,000", func(int) []capping.UserID { return spread }, 10_000},
		{"blast, calls of 65,536", func(int) []capping.UserID { return spread }, 65_536},
		{"random users, calls of 10,000", func(int) []capping.UserID {
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			return order[:min(len(order), b.scaled(120_000, 20_000))]
		}, 10_000},
		{"one user a call", func(int) []capping.UserID { return order[:b.scaled(20_000, 500)] }, 1},
	} {
		rounds := make([][]cost, len(trials))
		for round := range 2*b.rounds + 1 {
			users := w.users(round)
			b.clock.advance(apart)
			message := b.message()
			for i := range trials {
				i = (i + round) % len(trials)
				tr := trials[i]
				versions := versionsOf(tr.store)
				rounds[i] = append(rounds[i], b.round(tr.redis, func() int {
					verdicts := make([]capping.Verdict, w.size)
					for part := range slices.Chunk(users, w.size) {
						clear(verdicts)
						batch := b.batch(message, part)
						if tr.check {
							batch.Known = versions
						}
						require.NoError(t, tr.store.Filter(context.Background(), batch, verdicts[:len(part)]))
						require.Equal(t, len(part), count(verdicts[:len(part)], capping.Allowed))
					}
					return len(users)
				}))
			}
		}
		base := median(rounds[0])
		for i, tr := range trials {
			m := median(rounds[i])
			t.Logf("%-30s %-12s Redis %.3f µs (%+.1f %%), client %.3f µs (%+.1f %%)", w.name, tr.name, m.redis,
				100*(m.redis/base.redis-1), m.client, 100*(m.client/base.client-1))
		}
	}
}
