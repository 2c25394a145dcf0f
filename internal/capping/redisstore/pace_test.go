package redisstore

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// slotsOfGrant returns the slots of a grant, one per permit.
func slotsOfGrant(g *pacing.Grant) (slots []pacing.Time) {
	for _, run := range g.Runs {
		for k := range run.Permits {
			slots = append(slots, g.At.Add(run.Wait+time.Duration(k/run.Burst)*run.Every))
		}
	}
	return slots
}

// referee runs Place beside the store, for the same asks at the same times.
type referee struct {
	logs     map[string]*pacing.Log
	requests map[pacing.Request][]pacing.Time
}

func newReferee() *referee {
	return &referee{map[string]*pacing.Log{}, map[pacing.Request][]pacing.Time{}}
}

// check compares the grant with the grant of Place.
func (r *referee) check(t require.TestingT, ask *pacing.Ask, g *pacing.Grant) {
	var logs []*pacing.Log
	for _, target := range ask.Targets {
		name := target.Pacer + ":" + target.Message
		if r.logs[name] == nil {
			r.logs[name] = &pacing.Log{}
		}
		logs = append(logs, r.logs[name])
	}
	left := *ask
	want, replayed := r.requests[ask.Request]
	require.Equal(t, replayed && ask.Permits > 0, g.Replayed)
	switch {
	case g.Replayed:
		left.Permits = 0
	case g.More:
		left.Permits, want = g.Granted, nil
	default:
		want = nil
	}
	var placed pacing.Placed
	for {
		placed = pacing.Place(g.At, &left, logs)
		part := pacing.Grant{At: g.At, Runs: placed.WaitRuns(g.At)}
		want = append(want, slotsOfGrant(&part)...)
		left.Permits -= int(placed.Total)
		if !placed.More {
			break
		}
	}
	if ask.Request != (pacing.Request{}) && len(want) > 0 {
		r.requests[ask.Request] = want
	}
	require.Equal(t, want, slotsOfGrant(g))
	require.Equal(t, len(want), g.Granted)
	require.Equal(t, placed.Next.Sub(g.At), g.Next)
	require.Equal(t, placed.Target, g.Target)
	if placed.Target >= 0 {
		require.Equal(t, placed.Limit, g.Limit)
	}
	for i := range ask.Targets {
		require.Equal(t, pacing.StateOf(g.At, &ask.Targets[i], logs[i]), g.States[i], "%s of %v", ask.Targets[i].Pacer,
			ask.Targets[i].Limits)
	}
}

func randomLimits(r *rand.Rand) (limits []pacing.Limit) {
	for range 1 + r.IntN(pacing.MaxLimits+1) {
		limits = append(limits, pacing.Limit{
			Max:    1 + r.IntN([]int{1, 3, 10, 100, 2000}[r.IntN(5)]),
			Window: time.Duration(1+r.IntN([]int{10, 1000, 100_000, 5_000_000}[r.IntN(4)])) * time.Microsecond,
		})
	}
	return limits
}

// The script and Place implement the same rule. TestPaceScriptAgreesWithPlaceOften has more histories.
func TestPaceScriptAgreesWithPlace(t *testing.T) {
	t.Parallel()
	paceScriptAgreesWithPlace(t, 0, 30)
}

// paceScriptAgreesWithPlace compares script and Place on random histories, with the seeds from up to but not
// including to.
func paceScriptAgreesWithPlace(t *testing.T, from, to uint64) {
	s := openShared(t, nil)
	for seed := from; seed < to; seed++ {
		r, referee := rand.New(rand.NewPCG(seed, 2)), newReferee()
		var targets []pacing.Target
		for i := range max(1, r.IntN(6)-2) {
			target := pacing.Target{Pacer: fmt.Sprintf("p%d-%d", seed, i), Limits: randomLimits(r)}
			if r.IntN(3) == 0 {
				target.Message = "0a1b"
			}
			targets = append(targets, target)
		}
		for range 1 + r.IntN(30) {
			if r.IntN(5) == 0 { // a reload
				targets[r.IntN(len(targets))].Limits = randomLimits(r)
			}
			ask := &pacing.Ask{Targets: targets[r.IntN(len(targets)):],
				Permits: r.IntN([]int{2, 2, 10, 3000}[r.IntN(4)])}
			ask.MaxWait = time.Duration(r.IntN([]int{1, 1000, 1_000_000}[r.IntN(3)])) * time.Microsecond
			if r.IntN(3) == 0 {
				ask.Request = pacing.Request{byte(r.IntN(3)), 5: byte(seed), 6: byte(seed >> 8)}
			}
			grant, err := s.TakePermits(t.Context(), ask)
			if _, reused := err.(*pacing.ReuseError); reused {
				continue
			}
			require.NoError(t, err, "seed %d", seed)
			referee.check(t, ask, &grant)
		}
	}
}

// Requests of one call divide its grant as shares do, and are remembered with their parts.
func TestJoinedRequestsDivideOneGrant(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	for seed := range uint64(30) {
		r, referee := rand.New(rand.NewPCG(seed, 3)), newReferee()
		var targets []pacing.Target
		for i := range 1 + r.IntN(3)/2 {
			target := pacing.Target{Pacer: fmt.Sprintf("j%d-%d", seed, i), Limits: randomLimits(r)}
			if r.IntN(4) == 0 {
				target.Message = "0a1b"
			}
			targets = append(targets, target)
		}
		for call := range 1 + r.IntN(8) {
			sum := &pacing.Ask{Targets: targets, MaxWait: time.Duration(r.IntN(1_000_000)) * time.Microsecond}
			var joined []*pacing.Ask
			for i := range 2 + r.IntN(9) {
				one := &pacing.Ask{Targets: targets, MaxWait: sum.MaxWait,
					Permits: 1 + r.IntN([]int{1, 5, 300}[r.IntN(3)]),
					Request: pacing.Request{byte(seed), byte(seed >> 8), byte(call), byte(i), 1}}
				sum.Permits += one.Permits
				joined = append(joined, one)
			}
			grant, err := s.pacers.take(t.Context(), sum, joined)
			require.NoError(t, err, "seed %d", seed)
			referee.check(t, sum, &grant)
			rest := shares{grant}
			var remembered []int
			for i, one := range joined {
				own := rest.share(one.Permits)
				if own.Granted == 0 {
					continue // it is not remembered
				}
				remembered = append(remembered, i)
				again := take(t, s, one)
				require.True(t, again.Replayed, "seed %d", seed)
				require.Equal(t, slotsOfGrant(&own), slotsOfGrant(&again), "seed %d", seed)
				requireSameRuns(t, runsOf(&own), &own, &again)
				require.Equal(t, own.More, again.More, "seed %d", seed)
			}
			if grant.Granted > 0 {
				_, err = s.pacers.take(t.Context(), sum, joined)
				var again *repeatedError
				require.ErrorAs(t, err, &again)
				require.Equal(t, remembered, again.asks, "seed %d", seed)
			}
		}
	}
}

// requireSameRuns requires the runs of a grant to be those of its repetition.
func requireSameRuns(t *testing.T, runs []pacing.WaitRun, first, again *pacing.Grant) {
	t.Helper()
	later := again.At.Sub(first.At)
	for i := range runs {
		runs[i].Wait -= later
	}
	require.Equal(t, runs, again.Runs)
}

// Callers with ids that take permits at the same time get each permit once, also when they repeat their requests.
func TestConcurrentRequestsWithIDs(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	for name, limits := range map[string][]pacing.Limit{
		"room": {{Max: 1_000_000, Window: time.Hour}}, "rate": {{Max: 1, Window: time.Millisecond}},
		"full": {{Max: 300, Window: time.Hour}, {Max: 7, Window: 10 * time.Millisecond}},
	} {
		var mu sync.Mutex
		slots := map[pacing.Request][]pacing.Time{}
		var callers sync.WaitGroup
		for caller := range 16 {
			callers.Go(func() {
				for call := range 30 {
					ask := askOf(name, 1, time.Hour, limits...)
					ask.Request = pacing.Request{byte(caller), byte(call / 2), name[1]}
					ask.Permits = 1 + call/2%3 // each request is made twice
					grant, err := s.TakePermits(t.Context(), ask)
					if !assert.NoError(t, err) {
						return
					}
					mu.Lock()
					if first, again := slots[ask.Request]; again && len(first) > 0 {
						assert.True(t, grant.Replayed)
						assert.Equal(t, first, slotsOfGrant(&grant))
					}
					slots[ask.Request] = slotsOfGrant(&grant)
					mu.Unlock()
				}
			})
		}
		callers.Wait()
		total := 0
		for _, of := range slots {
			total += len(of)
		}
		require.EqualValues(t, total, storedLog(t, s, name).Total, name)
	}
}

// irregular are limits under which single permits fill a log.
var irregular = []pacing.Limit{{Max: 100_000, Window: time.Hour}, {Max: 50_000, Window: 10 * time.Minute}}

func askOf(pacer string, permits int, wait time.Duration, limits ...pacing.Limit) *pacing.Ask {
	return &pacing.Ask{Targets: []pacing.Target{{Pacer: pacer, Limits: limits}}, Permits: permits, MaxWait: wait}
}

func take(t testing.TB, s *Store, ask *pacing.Ask) pacing.Grant {
	t.Helper()
	grant, err := s.TakePermits(t.Context(), ask)
	require.NoError(t, err)
	return grant
}

// pacerKeys returns the store's keys of pacers, and a client of their server.
func pacerKeys(t testing.TB, s *Store) (script.PacerKeys, *redis.Client) {
	p := s.keyspace.PartitionOf("pacers")
	return script.PacerKeys{Prefix: s.prefixes[p]}, admin(t, s.top.Route(p).Addr())
}

// storedLog returns the pacer's log.
func storedLog(t testing.TB, s *Store, pacer string) *pacing.Log {
	t.Helper()
	keys, client := pacerKeys(t, s)
	log, err := script.DecodePacerLog(client.Get(t.Context(), keys.Log(pacer, "")).Val())
	require.NoError(t, err)
	return log.Log
}

// One of the callers that find a full log merges it, and the limits' view of the log stays the same.
func TestFullLogsAreMerged(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	other := openTest(t, s.config)
	var taken atomic.Int64
	var callers sync.WaitGroup
	const calls = 4 * pacing.MostRuns
	for caller := range 8 {
		callers.Go(func() {
			store := []*Store{s, other}[caller%2]
			for range calls / 8 {
				grant, err := store.TakePermits(t.Context(), askOf("p", 1, 0, irregular...))
				if !assert.NoError(t, err) {
					return
				}
				taken.Add(int64(grant.Granted))
			}
		})
	}
	callers.Wait()
	log := storedLog(t, s, "p")
	require.Equal(t, taken.Load(), log.Total)
	require.EqualValues(t, calls, log.Total)
	require.LessOrEqual(t, len(log.Runs), pacing.MostRuns)
	looked := take(t, s, askOf("p", 0, 0, irregular...))
	require.Equal(t, []int{calls, calls}, looked.States[0].Used, "all are within their windows")
	keys, client := pacerKeys(t, s)
	require.LessOrEqual(t, client.StrLen(t.Context(), keys.Log("p", "")).Val(), int64(1<<16))
	require.Greater(t, client.PTTL(t.Context(), keys.Log("p", "")).Val(), pacing.KeepFor(irregular))
}

// Runs that no limit can see are dropped without a merge.
func TestRunsThatNobodySeesAreDropped(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	limits := []pacing.Limit{{Max: 20, Window: 4 * time.Millisecond}}
	longest, cut := 0, false
	for round := 0; !cut && round < 60; round++ {
		for range 200 {
			take(t, s, askOf("p", 1, 0, limits...))
		}
		n := len(storedLog(t, s, "p").Runs)
		cut = n < longest
		longest = max(longest, n)
	}
	require.True(t, cut)
	require.Less(t, longest, 1024+200)
}

func TestRequestsAreRemembered(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	limits := []pacing.Limit{{Max: 10, Window: time.Hour}, {Max: 1, Window: time.Millisecond}}
	for name, ask := range map[string]*pacing.Ask{
		"at once": askOf("a", 1, 0, limits[0]), "in the future": askOf("b", 7, time.Second, limits...),
		"in part": askOf("c", 50, 2*time.Second, limits...),
	} {
		ask.Request = pacing.Request{1, byte(ask.Permits)}
		first := take(t, s, ask)
		require.False(t, first.Replayed, name)
		keys, client := pacerKeys(t, s)
		ttl := client.PTTL(t.Context(), keys.Request(ask.Request)).Val()
		require.InDelta(t, (ask.MaxWait + pacing.RememberFor).Seconds(), ttl.Seconds(), 30, name)
		total := storedLog(t, s, ask.Targets[0].Pacer).Total
		again := take(t, s, ask)
		require.True(t, again.Replayed, name)
		require.Equal(t, slotsOfGrant(&first), slotsOfGrant(&again), name)
		require.Equal(t, first.Granted, again.Granted)
		require.Equal(t, first.More, again.More)
		require.Equal(t, total, storedLog(t, s, ask.Targets[0].Pacer).Total, "taken once")
		other := *ask
		other.Permits++
		_, err := s.TakePermits(t.Context(), &other)
		require.IsType(t, &pacing.ReuseError{}, err)
		require.NoError(t, s.ForgetPacer(t.Context(), ask.Targets[0].Pacer, ""))
		again = take(t, s, ask)
		require.Equal(t, slotsOfGrant(&first), slotsOfGrant(&again), "requests outlive their pacers")
	}
	full := askOf("a", 20, 0, limits[0])
	require.Equal(t, 10, take(t, s, full).Granted)
	full.Request = pacing.Request{2}
	require.Zero(t, take(t, s, full).Granted)
	require.NoError(t, s.ForgetPacer(t.Context(), "a", ""))
	require.Equal(t, 10, take(t, s, full).Granted, "a refusal is not remembered")
}

func TestForgottenPacersBeginAnew(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	hour := pacing.Limit{Max: 3, Window: time.Hour}
	ofMessage := func(pacer, message string) *pacing.Ask {
		ask := askOf(pacer, 5, 0, hour)
		ask.Targets[0].Message = message
		return ask
	}
	asks := []*pacing.Ask{ofMessage("a", ""), ofMessage("a", "01"), ofMessage("a", "02"), ofMessage("b", ""),
		ofMessage("b", "01")}
	for range 3 {
		for _, ask := range asks {
			require.Equal(t, 3, take(t, s, ask).Granted)
			require.Zero(t, take(t, s, ask).Granted)
		}
		require.NoError(t, s.ForgetPacer(t.Context(), "a", ""))
		require.Zero(t, take(t, s, asks[3]).Granted)
		require.Zero(t, take(t, s, asks[4]).Granted)
		require.Zero(t, take(t, s, ofMessage("b", "01")).States[0].Queue)
		require.NoError(t, s.ForgetPacer(t.Context(), "b", ""))
	}
	require.NoError(t, s.ForgetPacer(t.Context(), "never used", pacing.AnyGroup))

	// The note is later than the clock, which was set back: logs that are made now count all the same.
	keys, client := pacerKeys(t, s)
	later := time.Now().Add(time.Minute).UnixMicro()
	require.NoError(t, client.Set(t.Context(), keys.Forgotten("a"), later, time.Hour).Err())
	require.Equal(t, 3, take(t, s, asks[1]).Granted)
	require.Zero(t, take(t, s, asks[1]).Granted)
	require.NoError(t, s.ForgetPacer(t.Context(), "a", ""))
	require.Equal(t, 3, take(t, s, asks[1]).Granted)
	require.Zero(t, take(t, s, asks[1]).Granted)
	require.Greater(t, client.PTTL(t.Context(), keys.Forgotten("a")).Val(), pacing.MaxWindow+pacing.MaxWait)
}

// A log outlives its newest slot, and most calls need not set its TTL.
func TestPacerLogsExpire(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	keys, client := pacerKeys(t, s)
	ttl := func() time.Duration { return client.PTTL(t.Context(), keys.Log("p", "")).Val() }
	day := 24 * time.Hour
	within := func(least time.Duration) {
		t.Helper()
		require.Greater(t, ttl(), least)
		require.Less(t, ttl(), least+least/32)
	}
	second := pacing.Limit{Max: 5, Window: time.Second}
	take(t, s, askOf("p", 1, 0, second))
	within(day)
	take(t, s, askOf("p", 1, 0, second, pacing.Limit{Max: 5, Window: 10 * day}))
	within(10 * day)
	take(t, s, askOf("p", 1, 0, second))
	within(10 * day)
	take(t, s, askOf("p", 3000, time.Hour, second))
	within(10 * day)
	require.NoError(t, client.PExpire(t.Context(), keys.Log("p", ""), time.Hour).Err())
	take(t, s, askOf("p", 1, time.Hour, second))
	require.LessOrEqual(t, ttl(), time.Hour, "a call that need not see to the TTL leaves it")
}
