package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
	"capper/internal/live"
	"capper/internal/testkit"
)

// optedOut is the set that these tests change.
const optedOut = "opted-out"

// twoStores returns two stores in one new namespace.
func twoStores(t *testing.T, change func(*Config)) (a, b *Store) {
	a = openShared(t, change)
	return a, openTest(t, a.config)
}

// changed changes a set and requires that the store has stored everything.
func changed(t testing.TB, s *Store, b live.Batch) live.Stored {
	t.Helper()
	if b.Set == "" {
		b.Set = optedOut
	}
	stored, err := s.Change(t.Context(), &b)
	require.NoError(t, err)
	require.Empty(t, stored.Unstored)
	return stored
}

func adding(users ...capping.UserID) live.Batch {
	return live.Batch{Set: optedOut, By: "crm", Add: users}
}

// known returns a batch whose caller knows what the store knows.
func known(s *Store, message string, users []capping.UserID) *capping.Batch {
	b := batchOf(message, users)
	b.Known = versionsOf(s)
	return b
}

func versionsOf(s *Store) (versions []string) {
	for p := range s.keyspace.Partitions {
		versions = append(versions, s.Lists().Version(p))
	}
	return versions
}

func kindsOf(s *Store, users []capping.UserID) map[capping.UserID]live.Kind {
	kinds := map[capping.UserID]live.Kind{}
	for _, user := range users {
		if change, ok := s.Lists().Of(optedOut, user); ok {
			kinds[user] = change.Kind
		}
	}
	return kinds
}

func outdated(verdicts []capping.Verdict) (n int) {
	for _, v := range verdicts {
		if v.Outdated {
			n++
		}
	}
	return n
}

// client returns a client for the node that holds the partition.
func clientOf(t testing.TB, s *Store, partition int) *redis.Client {
	return admin(t, s.top.Route(partition).Addr())
}

func liveKey(s *Store, partition int) string {
	return string(script.AppendLiveKey(nil, s.prefixes[partition]))
}

// quietLive stops the store's background renewal, so that a test decides when the store reads.
func quietLive(t testing.TB, stores ...*Store) {
	for _, s := range stores {
		s.live.close()
		s.live.ctx, s.live.cancel = context.WithCancel(context.Background())
		t.Cleanup(s.live.cancel)
	}
}

// TestEachAttemptOfAChangeHasANonceOfItsOwn: two records with one nonce and number have the same records before them.
func TestEachAttemptOfAChangeHasANonceOfItsOwn(t *testing.T) {
	t.Parallel()
	a, _ := twoStores(t, nil)
	added := adding(1)
	op := a.live.newAppend(live.RecordOf(&added, capping.InstantOf(time.Now())))
	made := string(op.nonce)
	require.NoError(t, a.live.config.Perform(func() *dispatch.Run {
		r := a.live.config.Dispatcher.NewRun(nil, true)
		r.Add(op, a.keyspace.Partition(1))
		r.Do(t.Context())
		return r
	}))
	require.NotEqual(t, made, string(op.nonce))
	require.Equal(t, string(op.nonce), op.after[script.LiveHex:2*script.LiveHex])
}

// An instance that does not know the latest changes decides nobody of their partitions, writes nothing, and decides the
// others. After a renewal it decides.
func TestChangesOfAnotherInstanceAreKnownBeforeADecision(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, changesAreKnownBeforeADecision)
}

func changesAreKnownBeforeADecision(t *testing.T, l layout) {
	a, b := twoStores(t, l.with(nil))
	quietLive(t, a, b)
	users := l.users(spread(500)...)
	before := known(b, "first", users)
	require.Equal(t, len(users), count(filter(t, b, before), capping.Allowed))

	stored := changed(t, a, adding(users[3]))
	require.Zero(t, stored.Superseded)
	require.InDelta(t, float64(capping.InstantOf(time.Now())), float64(stored.At), 60_000)
	late := known(b, "second", users)
	verdicts := filter(t, b, late)
	affected := 0
	for i, user := range users {
		if b.keyspace.Partition(user) == b.keyspace.Partition(users[3]) {
			affected++
			require.Equal(t, capping.Verdict{Outdated: true, FreesAt: capping.Never}, verdicts[i])
		} else {
			require.Equal(t, capping.Allowed, verdicts[i].Outcome)
		}
	}
	require.Equal(t, affected, outdated(verdicts))
	require.Equal(t, 1, readLogs(t, b)[users[3]].Len(), "nothing was recorded")

	require.NoError(t, b.Renew(t.Context(), []capping.UserID{users[3]}))
	require.Equal(t, map[capping.UserID]live.Kind{users[3]: live.Added}, kindsOf(b, users))
	change, _ := b.Lists().Of(optedOut, users[3])
	require.Equal(t, live.Change{User: users[3], Kind: live.Added, At: stored.At, By: "crm"}, change)
	require.Equal(t, versionsOf(a), versionsOf(b))
	again := filter(t, b, known(b, "second", users))
	require.Equal(t, affected, count(again, capping.Allowed))
	require.Equal(t, len(users)-affected, count(again, capping.Replayed))

	// Without the check, and in the instance that made the change, nobody is outdated.
	require.Zero(t, outdated(filter(t, a, known(a, "third", users))))
	unchecked := known(b, "fourth", users)
	unchecked.Known = nil
	changed(t, a, adding(users...))
	require.Equal(t, len(users), count(filter(t, b, unchecked), capping.Allowed))
	require.Equal(t, len(users), outdated(filter(t, b, before)))
}

// A store renews its changes in the background, and reads all of them when it starts.
func TestChangesReachOtherInstancesByThemselves(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, changesReachOtherInstances)
}

func changesReachOtherInstances(t *testing.T, l layout) {
	a, b := twoStores(t, l.with(nil))
	users := l.users(spread(300)...)
	changed(t, a, adding(users...))
	testkit.Eventually(t, func() bool { return len(kindsOf(b, users)) == len(users) })
	later := openTest(t, a.config)
	require.Len(t, kindsOf(later, users), len(users))
	require.Equal(t, versionsOf(a), versionsOf(later))
	require.Zero(t, outdated(filter(t, later, known(later, "m", users))))
}

// A retry whose first attempt was executed without a reply counts as the call's own, also after the renewal.
func TestOwnAttemptsBeforeARenewalAreNoReplays(t *testing.T) {
	t.Parallel()
	between := newProxies(t)
	a := openShared(t, nil)
	quietLive(t, a)
	config := a.config
	config.dial = between.dial
	b := openTest(t, config)
	quietLive(t, b)
	users := []capping.UserID{1, 2, 3}
	batch := known(b, "m", users)
	held := between.to(b.top.Route(0).Addr())
	held.cut.Store(0)
	begun := capping.InstantOf(time.Now())
	verdicts, done := make([]capping.Verdict, len(users)), make(chan error)
	go func() { done <- b.Filter(context.Background(), batch, verdicts) }()
	testkit.Eventually(t, func() bool { return readLogs(t, a)[1].Len() == 1 }, "the first attempt records")
	changed(t, a, adding(2))
	cut := held.cuts.Load()
	testkit.Eventually(t, func() bool { return held.cuts.Load() >= cut+2 }, "an attempt begins after the change")
	held.cut.Store(cutNever)
	require.NoError(t, testkit.Receive(t, done))
	require.Equal(t, len(users), outdated(verdicts))
	since := verdicts[0].FreesAt
	require.GreaterOrEqual(t, since, begun)
	require.Less(t, since, capping.Never)

	require.NoError(t, b.Renew(t.Context(), users))
	again := known(b, "m", users)
	require.Equal(t, len(users), count(filter(t, b, again), capping.Replayed))
	again.Since = since
	require.Equal(t, len(users), count(filter(t, b, again), capping.Allowed))
	require.Equal(t, 1, readLogs(t, a)[2].Len())
}

// An earlier instant does not stand against a later one, a later call does, whatever the clocks of the instances show.
func TestTheLaterCallStands(t *testing.T) {
	t.Parallel()
	c := newClock()
	a, b := twoStores(t, func(config *Config) { config.Clock = c.now })
	b.live.config.Clock = func() time.Time { return c.now().Add(200 * time.Millisecond) } // its clock is fast
	quietLive(t, a, b)
	first := changed(t, b, adding(7, 8))
	require.Equal(t, c.instant()+200, first.At)
	second := changed(t, a, live.Batch{Remove: []capping.UserID{7}})
	require.Equal(t, first.At+1, second.At)
	require.Zero(t, second.Superseded)
	early := changed(t, a, live.Batch{At: first.At - 1, Remove: []capping.UserID{8, 9}})
	require.Equal(t, live.Stored{At: first.At - 1, Superseded: 1}, early)
	forgot := changed(t, b, live.Batch{Forget: []capping.UserID{8}})
	require.Greater(t, forgot.At, first.At)
	require.NoError(t, a.Renew(t.Context(), nil))
	want := map[capping.UserID]live.Kind{7: live.Removed, 8: live.Forgotten, 9: live.Removed}
	for _, s := range []*Store{a, b} {
		require.Equal(t, want, kindsOf(s, []capping.UserID{7, 8, 9}))
	}
	after := changed(t, a, live.Batch{After: c.instant() + 5000, Add: []capping.UserID{7}})
	require.Equal(t, c.instant()+5001, after.At)
}

// A call that arrived before another one, and executes after it, overrides no change of the other call. Within the
// clock tolerance, the call that executes later stands, because clocks cannot tell which one was earlier.
func TestALateChangeOverridesNoLaterOne(t *testing.T) {
	t.Parallel()
	c := newClock()
	const skew = time.Minute
	a, b := twoStores(t, func(config *Config) { config.Clock, config.ClockSkew = c.now, skew })
	quietLive(t, a, b)
	added := changed(t, a, adding(7, 8))
	remove := func(before time.Duration, user capping.UserID) live.Stored {
		asked := added.At - capping.Instant(before.Milliseconds())
		ctx := capping.WithCaller(t.Context(), capping.Caller{Asked: asked})
		stored, err := b.Change(ctx, &live.Batch{Set: optedOut, Remove: []capping.UserID{user}})
		require.NoError(t, err)
		require.Empty(t, stored.Unstored)
		return stored
	}
	require.Equal(t, 1, remove(2*skew+time.Millisecond, 7).Superseded)
	require.Equal(t, live.Stored{At: added.At + 1}, remove(2*skew, 8))
	require.NoError(t, b.Renew(t.Context(), nil))
	require.Equal(t, 1, remove(2*skew+time.Millisecond, 7).Superseded, "known before the call")
	require.NoError(t, a.Renew(t.Context(), nil))
	want := map[capping.UserID]live.Kind{7: live.Added, 8: live.Removed}
	for _, s := range []*Store{a, b} {
		require.Equal(t, want, kindsOf(s, []capping.UserID{7, 8}))
	}
}

// Two instances that make, pack and free changes at random agree with each other, with an instance that starts later,
// and with a naive model.
func TestInstancesAgreeOnLiveChanges(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, instancesAgreeOnLiveChanges)
}

func instancesAgreeOnLiveChanges(t *testing.T, l layout) {
	a, b := twoStores(t, l.with(nil))
	stores := []*Store{a, b}
	rng := rand.New(rand.NewPCG(1, 2))
	sets := []string{optedOut, "sms-stop"}
	users := l.users(spread(40)...)
	type of struct {
		set  string
		user capping.UserID
	}
	type state struct {
		at   capping.Instant
		kind live.Kind
	}
	model, freed := map[of]state{}, map[string]capping.Instant{}
	start := capping.InstantOf(time.Now()) - 10_000_000
	for step := range 800 {
		s := stores[rng.IntN(2)]
		batch := live.Batch{Set: sets[rng.IntN(2)], By: []string{"crm", "", "stop"}[rng.IntN(3)]}
		lists := []*[]capping.UserID{live.Forgotten: &batch.Forget, live.Removed: &batch.Remove, live.Added: &batch.Add}
		batch.At = start + capping.Instant(step*10+rng.IntN(200))
		for _, user := range users {
			if kind := rng.IntN(12); kind < 3 {
				*lists[kind] = append(*lists[kind], user)
			}
		}
		changed(t, s, batch)
		for kind, some := range lists {
			for _, user := range *some {
				was, ok := model[of{batch.Set, user}]
				now := state{batch.At, live.Kind(kind)}
				if batch.At > freed[batch.Set] && (!ok || now.at > was.at || now.at == was.at && now.kind > was.kind) {
					model[of{batch.Set, user}] = now
				}
			}
		}
		p := rng.IntN(s.keyspace.Partitions)
		switch rng.IntN(40) {
		case 0:
			require.NoError(t, s.live.pack(t.Context(), p))
		case 1:
			require.NoError(t, s.live.compact(t.Context(), p, nil))
		case 2:
			upTo := start + capping.Instant(step*10-500)
			require.NoError(t, s.Free(t.Context(), map[string]capping.Instant{batch.Set: upTo}))
			freed[batch.Set] = max(freed[batch.Set], upTo)
			maps.DeleteFunc(model, func(at of, is state) bool { return at.set == batch.Set && is.at <= upTo })
		}
	}
	check := func(s *Store, strict bool) {
		t.Helper()
		for _, set := range sets {
			for _, user := range users {
				want, ok := model[of{set, user}]
				change, found := s.Lists().Of(set, user)
				if want.kind == live.Forgotten && !strict { // compaction leaves it out
					require.NotContains(t, []live.Kind{live.Added, live.Removed}, change.Kind, "%s %d", set, user)
					continue
				}
				require.Equal(t, ok, found, "%s %d", set, user)
				require.Equal(t, want, state{change.At, change.Kind}, "%s %d", set, user)
			}
			require.Equal(t, freed[set], s.Lists().Freed(set))
		}
	}
	later := openTest(t, a.config)
	require.NoError(t, a.Renew(t.Context(), nil))
	require.NoError(t, b.Renew(t.Context(), nil))
	check(a, true)
	check(b, true)
	check(later, false)
	for p := range a.keyspace.Partitions {
		require.NoError(t, a.live.compact(t.Context(), p, nil))
	}
	last := openTest(t, a.config)
	check(last, false)
	fields := 0
	for p := range a.keyspace.Partitions {
		n, err := clientOf(t, a, p).HLen(t.Context(), liveKey(a, p)).Result()
		require.NoError(t, err)
		fields += int(n)
		ttl, err := clientOf(t, a, p).PTTL(t.Context(), liveKey(a, p)).Result()
		require.NoError(t, err)
		if n > 0 {
			require.Greater(t, ttl, 399*24*time.Hour)
		}
	}
	require.Less(t, fields, 10*len(users), "nothing but packed records is left")
}

// A log that is larger than a page is read page by page, and compacted part by part.
func TestLargeLogs(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, largeLogs)
}

func largeLogs(t *testing.T, l layout) {
	a, b := twoStores(t, l.with(func(c *Config) { c.Timeout = time.Minute })) // race detector and load
	quietLive(t, a, b)
	users := inPartition(a, 5, 120_000)
	for i, part := range [][]capping.UserID{users, users[:50_000], users[50_000:]} {
		for some := range slices.Chunk(part, 400) {
			record := live.RecordOf(&live.Batch{Set: fmt.Sprint("set-", i), Add: some}, capping.Instant(1000+i))
			require.NoError(t, a.live.heal(t.Context(), 5, []*live.Record{record}))
		}
	}
	require.NoError(t, b.Renew(t.Context(), users[:1]))
	require.Equal(t, len(users), b.Lists().Len("set-0"))
	require.NoError(t, a.live.compact(t.Context(), 5, nil))
	require.NoError(t, a.live.compact(t.Context(), 5, map[string]capping.Instant{"set-2": 5000}))
	changed(t, a, live.Batch{Set: "set-1", At: 2000, Remove: users[:50_000]})
	require.NoError(t, a.live.compact(t.Context(), 5, nil))
	later := openTest(t, a.config)
	for _, s := range []*Store{a, b, later} {
		require.NoError(t, s.Renew(t.Context(), users[:1]))
		require.Equal(t, len(users), s.Lists().Len("set-0"))
		require.Equal(t, 50_000, s.Lists().Len("set-1"))
		require.Zero(t, s.Lists().Len("set-2"))
		change, ok := s.Lists().Of("set-1", users[0])
		require.True(t, ok)
		require.Equal(t, live.Removed, change.Kind)
	}
}

// inPartition returns the first n users of a partition.
func inPartition(s *Store, partition, n int) (users []capping.UserID) {
	for i := uint64(0); s.keyspace.IsSpread() && len(users) < n; i++ {
		users = append(users, capping.UserID(i<<40|uint64(partition)))
	}
	for bucket := uint32(partition); len(users) < n; bucket += uint32(s.keyspace.Partitions) {
		for field := range s.keyspace.BucketSize {
			users = append(users, capping.UserID(bucket*s.keyspace.BucketSize+field))
		}
	}
	return users[:n]
}

// Arguments that live.lua rejects write nothing.
func TestLogsOfLiveChangesCheckArgumentsBeforeTheyWrite(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	n, key := s.top.Route(0), liveKey(s, 0)
	run := func(keys []string, args ...any) ([]string, error) {
		return s.scripts.Live.Run(t.Context(), n.Client(), keys, args...).StringSlice()
	}
	const id, nonce = "0123abcd", "89efcdab"
	still := strings.Repeat("\x00", 9) // a header that turns off the check of the clock
	for i, args := range [][]any{
		{}, {"x"}, {"a"}, {"a", "1000", id, nonce}, {"a", "1000", id, nonce, "x"},
		{"a", "1000", id, nonce, "", still}, {"a", "1000", id, nonce, "x", still, "y"},
		{"a", "1000", id, nonce, "x", still[1:]}, {"a", "1000", id, nonce, "x", still + "0"},
		{"a", "0", id, nonce, "x", still}, {"a", "soon", id, nonce, "x", still},
		{"a", "1000", "123", nonce, "x", still}, {"a", "1000", id, "89efcdaX", "x", still},
		{"r"}, {"r", "", "", ""}, {"r", "17", ""}, {"r", id + nonce + "x", ""}, {"r", "", "q5"}, {"r", "", "p"},
		{"l"}, {"l", "1000", id, nonce}, {"l", "0", id, nonce, "t"}, {"l", "1000", id, "x", "t"},
		{"l", "1000", id, nonce, "t t"}, {"c", "t"}, {"c", "t", "a", "b"}, {"c", "", "a"}, {"e", "t"}, {"e", "t",
			"a b"},
		{"p"}, {"p", "1000", id + nonce + "1", "", "1 1 0 0 1 " + nonce, "", ""},
		{"p", "0", id + nonce + "1", "", "1 1 0 0 1 " + nonce, "", "", "0"},
		{"p", "1000", "1", "", "1 1 0 0 1 " + nonce, "", "", "0"},
		{"p", "1000", id + nonce + "1", "", "1 1 0 0 1", "", "", "0"},
		{"p", "1000", id + nonce + "1", "", "1 1 0 0 1 " + nonce, "", "freed", "0"},
		{"p", "1000", id + nonce + "1", "", "1 1 0 0 1 " + nonce, nonce, "", "0"},
		{"p", "1000", id + nonce + "1", "", "1 1 0 0 1 " + nonce, "", "", "2", "1"},
		{"p", "1000", id + nonce + "1", "", "1 1 0 0 1 " + nonce, "", "", "1", ""},
		{"p", "1000", id + nonce + "1", "", "1 1 0 0 1 " + nonce, "", "", "0", "p1"},
		{"p", "1000", id + nonce + "1", "", "1 1 0 0 1 " + nonce, "", "", "0", "1", "x"},
		{"p", "1000", id + nonce + "1", "", "1 1 0 0 1 " + nonce, "", "", "0", "p1", ""},
	} {
		_, err := run([]string{key}, args...)
		require.ErrorContains(t, err, "BADARG", "case %d", i)
	}
	_, err := run([]string{key, key}, "r", "", "")
	require.ErrorContains(t, err, "BADARG")
	exists, err := n.Client().HGetAll(t.Context(), key).Result()
	require.NoError(t, err)
	require.Empty(t, exists)

	reply, err := run([]string{key}, "r", "", "")
	require.NoError(t, err)
	require.Equal(t, []string{"", "", "", "", "n", ""}, reply)
	reply, err = run([]string{key}, "p", "1000", id+nonce+"1", "", "1 1 0 0 1 "+nonce, "", "", "0")
	require.NoError(t, err)
	require.Equal(t, []string{"N", "", ""}, reply)
	reply, err = run([]string{key}, "a", "100000", id, nonce, "one", still)
	require.NoError(t, err)
	require.Equal(t, []string{"", id + nonce + "1", ""}, reply)
	reply, err = run([]string{key}, "a", "100000", "ffffffff", "11111111", "two", still)
	require.NoError(t, err)
	require.Equal(t, []string{id + nonce + "1", id + "111111112", ""}, reply)
	for _, read := range []struct {
		known, from string
		want        []string
	}{
		{"", "", []string{id + "111111112", "", "", "", "w", "", "1", nonce + "one", "2", "11111111two"}},
		{id + nonce + "1", "", []string{id + "111111112", "", "", "", "i", "", "2", "11111111two"}},
		{id + "111111112", "", []string{id + "111111112", "", "", "", "n", ""}},
		{id + "222222222", "", []string{id + "111111112", "", "", "", "w", "", "1", nonce + "one", "2", "11111111two"}},
		{id + nonce + "3", "", []string{id + "111111112", "", "", "", "w", "", "1", nonce + "one", "2", "11111111two"}},
		{"ffffffff" + nonce + "1", "2", []string{id + "111111112", "", "", "", "x", ""}},
		{id + nonce + "1", "2", []string{id + "111111112", "", "", "", "w", "", "2", "11111111two"}},
		{"", "t1", []string{id + "111111112", "", "", "", "w", "", "1", nonce + "one", "2", "11111111two"}},
	} {
		reply, err := run([]string{key}, "r", read.known, read.from)
		require.NoError(t, err)
		require.Equal(t, read.want, reply, "%q", read)
	}
	packed := "1 1 1 1 1 " + nonce
	for _, not := range [][]any{
		{"p", "1000", id + "222222221", "", packed, "", "", "0"},
		{"p", "1000", id + nonce + "1", "x", packed, "", "", "0"},
		{"p", "1000", "ffffffff" + nonce + "1", "", packed, "", "", "0"},
	} {
		reply, err := run([]string{key}, not...)
		require.NoError(t, err)
		require.Equal(t, []string{"N", id + "111111112", id + "111111112"}, reply)
	}
	reply, err = run([]string{key}, "p", "100000", id+nonce+"1", "", packed, "33333333", "freed", "1", "1", "p1", "ONE")
	require.NoError(t, err)
	require.Equal(t, []string{"D", id + "111111112", id + "333333333"}, reply)
	for _, read := range []struct{ known, kind string }{{id + nonce + "1", "i"}, {id + "222222221", "w"}, {"", "w"}} {
		reply, err := run([]string{key}, "r", read.known, "")
		require.NoError(t, err)
		want := []string{id + "333333333", packed, "freed", "", read.kind, "", "p1", "ONE", "2", "11111111two", "3",
			"33333333"}
		if read.kind == "i" {
			want = slices.Delete(want, 6, 8)
		}
		require.Equal(t, want, reply)
	}
	reply, err = run([]string{key}, "r", id+"111111112", "1")
	require.NoError(t, err)
	require.Equal(t, "x", reply[4], "record 1 is packed")

	for _, step := range []struct {
		args []any
		want []string
	}{
		{[]any{"c", "t", "a"}, []string{"N"}},
		{[]any{"e", "t", "a"}, []string{"N"}},
		{[]any{"l", "100000", "ffffffff", "44444444", "t"}, []string{id + "333333333", id + "444444444", packed}},
		{[]any{"r", id + "333333333", ""}, []string{id + "444444444", packed, "freed", "t", "i", "", "4", "44444444"}},
		{[]any{"r", id + "444444444", ""}, []string{id + "444444444", packed, "freed", "t", "n", ""}},
		{[]any{"e", "t", "a", "b"}, []string{"M", "a", "b"}},
		{[]any{"c", "t", "b"}, []string{"D"}},
		{[]any{"c", "t", "b"}, []string{"D"}},
		{[]any{"e", "t", "a", "b", "bb"}, []string{"M", "a", "bb"}},
		{[]any{"l", "100000", "ffffffff", "55555555", "u"}, []string{id + "444444444", id + "555555555", packed}},
		{[]any{"c", "t", "a"}, []string{"N"}},
		{[]any{"e", "u", "b"}, []string{"M", "b"}}, // the confirmation was of another restoration
		{[]any{"c", "u", "a"}, []string{"D"}},
		{[]any{"c", "u", "b"}, []string{"D"}},
		{[]any{"e", "u", "b", "a"}, []string{"D"}},
		{[]any{"e", "u", "b", "a"}, []string{"N"}},
		{[]any{"r", id + "555555555", ""}, []string{id + "555555555", packed, "freed", "", "n", ""}},
	} {
		reply, err := run([]string{key}, step.args...)
		require.NoError(t, err)
		require.Equal(t, step.want, reply, "%q", step.args)
	}
}

// A value of the log that cannot be decoded makes the users of its partition unavailable, and nobody else.
func TestADamagedChangeIsNeverIgnored(t *testing.T) {
	t.Parallel()
	var log testkit.Log
	s := openShared(t, func(c *Config) { c.Logger = log.Logger() })
	changed(t, s, adding(0, 190))
	client, key := clientOf(t, s, 0), liveKey(s, 0)
	second := s.Lists().Version(0)[:16] + "2"
	require.NoError(t, client.HSet(t.Context(), key, "", second, "2", "89efcdab\x01garbage").Err())
	require.ErrorContains(t, s.Renew(t.Context(), []capping.UserID{0}), `field "2" of the Redis key `+key)
	require.NoError(t, s.Renew(t.Context(), []capping.UserID{190}))
	require.Equal(t, "degraded", s.Health(t.Context()).State)
	verdicts := filter(t, s, known(s, "m", []capping.UserID{0, 190}))
	require.True(t, verdicts[0].Outdated)
	require.Equal(t, capping.Allowed, verdicts[1].Outcome)
	testkit.Eventually(t, func() bool { return len(log.String()) > 0 })
	require.Contains(t, log.String(), "changes of sets cannot be read")
	_, err := openTest(t, s.config).Change(t.Context(), &live.Batch{Set: optedOut, Add: []capping.UserID{0}})
	require.ErrorContains(t, err, "read the changes of sets: field")
}

// No change is stored while an instance runs that would ignore it.
func TestChangesWaitForOlderInstances(t *testing.T) {
	t.Parallel()
	config := openShared(t, nil).config
	config.Namespace = namespace()
	older := openFormats(t, config, script.Known[:2])
	s := openFormats(t, config, script.Known)
	batch := adding(1)
	stored, err := s.Change(t.Context(), &batch)
	require.ErrorIs(t, err, live.ErrOlderInstance)
	require.Empty(t, stored)
	_, err = older.Change(t.Context(), &batch)
	require.ErrorIs(t, err, live.ErrOlderInstance)
	require.Empty(t, s.Lists().Version(0))
	require.NoError(t, older.Close())
	beat(t, s)
	changed(t, s, batch)
	require.Equal(t, map[capping.UserID]live.Kind{1: live.Added}, kindsOf(s, []capping.UserID{1}))
}

// Every instance knows the oldest as-of instants of the others, once all of them have reported.
func TestInstancesReportTheirGenerations(t *testing.T) {
	t.Parallel()
	a, b := twoStores(t, nil)
	c := openTest(t, a.config)
	a.AnnounceAsOf(map[string]capping.Instant{optedOut: 50})
	b.AnnounceAsOf(map[string]capping.Instant{optedOut: 30, `"formats":"1-1"`: 7})
	for _, s := range []*Store{a, b, c} {
		beat(t, s)
	}
	_, ok := a.OthersAsOf()
	require.False(t, ok, "the third has not reported")
	c.AnnounceAsOf(nil)
	beat(t, c)
	for s, want := range map[*Store]map[string]capping.Instant{
		a: {optedOut: 30, `"formats":"1-1"`: 7}, b: {optedOut: 50}, c: {optedOut: 30, `"formats":"1-1"`: 7},
	} {
		beat(t, s)
		asOf, ok := s.OthersAsOf()
		require.True(t, ok)
		require.Equal(t, want, asOf)
		require.Empty(t, s.Health(t.Context()).Fleet.Differing)
		require.Equal(t, script.Known.Newest(), s.fleet.seen.Load().format)
	}
	var text map[string]string
	own := records(t, a).HGet(t.Context(), a.marker.InstancesKey(), a.fleet.id).Val()
	require.NoError(t, json.Unmarshal([]byte(own[14:]), &text))
	require.Equal(t, `{"opted-out":50}`, text[asOfEntry])
}
