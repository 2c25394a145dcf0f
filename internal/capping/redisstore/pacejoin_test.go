package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/testkit"
)

// waitsOf returns the waits of all permits, one by one.
func waitsOf(runs []pacing.WaitRun) (waits []time.Duration) {
	for i := range runs {
		for k := range runs[i].Permits {
			waits = append(waits, runs[i].WaitOf(k))
		}
	}
	return waits
}

// However a grant is divided, its shares together equal the grant, in order of arrival.
func TestSharesAreTheGrant(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		log := &pacing.Log{}
		at := pacing.Time(0)
		for range 1 + r.IntN(6) {
			at += pacing.Time(1 + r.IntN(5))
			every, burst := int64(1+r.IntN(4)), int64(1+r.IntN(5))
			permits := int64(1 + r.IntN(30))
			log.Append(at, every, burst, permits)
			at, _ = log.Newest()
		}
		grant := pacing.Grant{Granted: int(log.Total), Runs: log.WaitRuns(0), More: seed%2 == 0}
		want, rest, asked := waitsOf(grant.Runs), shares{grant}, 0
		var got []time.Duration
		for asked <= grant.Granted {
			n := 1 + r.IntN(20)
			own := rest.share(n)
			require.Equal(t, min(n, max(0, grant.Granted-asked)), own.Granted)
			require.Equal(t, own.Granted, len(waitsOf(own.Runs)))
			require.Equal(t, grant.More && own.Granted < n, own.More)
			for _, run := range own.Runs {
				require.True(t, run.Every == 0 && run.Burst == 1 || run.Every > 0 && run.Permits > run.Burst, "%+v",
					run)
			}
			got = append(got, waitsOf(own.Runs)...)
			asked += n
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// heldCalls is a store whose first call waits.
type heldCalls struct {
	mu    sync.Mutex
	asked []int // permits of each call
	hold  chan struct{}
	err   error
}

func (h *heldCalls) take(_ context.Context, ask *pacing.Ask, _ []*pacing.Ask) (pacing.Grant, error) {
	h.mu.Lock()
	h.asked = append(h.asked, ask.Permits)
	first := len(h.asked) == 1
	h.mu.Unlock()
	if first {
		<-h.hold
		return pacing.Grant{Granted: ask.Permits}, nil
	}
	return pacing.Grant{Granted: ask.Permits - 1, Runs: []pacing.WaitRun{{Burst: 1, Permits: ask.Permits - 1}}}, h.err
}

func (j *joints) waitingFor(key string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.open[key] == nil {
		return -1
	}
	return len(j.open[key].waiting)
}

func TestAsksThatWaitBecomeOne(t *testing.T) {
	t.Parallel()
	for _, broken := range []error{nil, errors.New("no")} {
		h := &heldCalls{hold: make(chan struct{}), err: broken}
		j := &joints{open: map[string]*joint{}, take: h.take}
		one := func(permits int) *pacing.Ask {
			return &pacing.Ask{Targets: []pacing.Target{
				{Pacer: "p", Limits: []pacing.Limit{{Max: 9, Window: time.Second}}}}, Permits: permits}
		}
		key := jointKey(one(1))
		var all sync.WaitGroup
		var mu sync.Mutex
		granted, failed := 0, 0
		call := func(ctx context.Context, permits int) {
			all.Go(func() {
				grant, err := j.Take(ctx, one(permits))
				mu.Lock()
				defer mu.Unlock()
				if granted += grant.Granted; err != nil {
					failed++
				}
			})
		}
		call(t.Context(), 5)
		testkit.Eventually(t, func() bool { return j.waitingFor(key) == 0 })
		gone, leave := context.WithCancel(t.Context())
		for range 10 {
			call(t.Context(), 3)
		}
		call(gone, 1000)
		testkit.Eventually(t, func() bool { return j.waitingFor(key) == 11 })
		leave()
		close(h.hold)
		all.Wait()
		j.runs.Wait()
		require.Equal(t, []int{5, 30}, h.asked)
		if broken == nil {
			require.Equal(t, 5+29, granted)
			require.Equal(t, 1, failed, "who left")
		} else {
			require.Equal(t, 11, failed)
		}
		require.Equal(t, -1, j.waitingFor(key), "nothing is kept")
	}
}

// Only asks that differ in nothing but their number of permits are combined.
func TestWhatDoesNotJoin(t *testing.T) {
	t.Parallel()
	make1 := func(change func(*pacing.Ask)) *pacing.Ask {
		ask := &pacing.Ask{Targets: []pacing.Target{{Pacer: "p", Message: "0a",
			Limits: []pacing.Limit{{Max: 9, Window: time.Second}}}}, Permits: 1}
		change(ask)
		return ask
	}
	plain := make1(func(*pacing.Ask) {})
	require.True(t, joins(plain))
	require.Equal(t, jointKey(plain), jointKey(make1(func(a *pacing.Ask) { a.Permits = 7 })))
	for _, change := range []func(*pacing.Ask){
		func(a *pacing.Ask) { a.MaxWait = 1 }, func(a *pacing.Ask) { a.Targets[0].Pacer = "q" },
		func(a *pacing.Ask) { a.Request[3] = 1 }, func(a *pacing.Ask) { a.Targets[0].Group = "g" },
		func(a *pacing.Ask) { a.Targets[0].Message = "0b" },
		func(a *pacing.Ask) { a.Targets[0].Limits[0].Max++ }, func(a *pacing.Ask) { a.Targets[0].Limits[0].Window++ },
		func(a *pacing.Ask) { a.Targets = append(a.Targets, a.Targets[0]) },
		func(a *pacing.Ask) { a.Targets[0].Limits = append(a.Targets[0].Limits, a.Targets[0].Limits[0]) },
	} {
		require.NotEqual(t, jointKey(plain), jointKey(make1(change)))
	}
	require.False(t, joins(make1(func(a *pacing.Ask) { a.Permits = 0 })))
	require.False(t, joins(make1(func(a *pacing.Ask) { a.Continues = true })))
	require.False(t, joins(make1(func(a *pacing.Ask) { a.Ends = true })))
	withID := func(a *pacing.Ask) { a.Request[3] = 1 }
	lasting := make1(func(a *pacing.Ask) { a.Request[3], a.Lasts = 1, time.Second })
	require.NotEqual(t, jointKey(make1(withID)), jointKey(lasting))
}

// idCalls is a store that remembers requests and knows no limits. Its first call waits.
type idCalls struct {
	mu         sync.Mutex
	hold       chan struct{}
	calls      [][]pacing.Request // requests of each call
	remembered map[pacing.Request]bool
}

func (c *idCalls) take(_ context.Context, ask *pacing.Ask, joined []*pacing.Ask) (pacing.Grant, error) {
	c.mu.Lock()
	var requests []pacing.Request
	for _, one := range joined {
		requests = append(requests, one.Request)
	}
	if joined == nil {
		requests = append(requests, ask.Request)
	}
	c.calls = append(c.calls, requests)
	first := len(c.calls) == 1
	c.mu.Unlock()
	if first {
		<-c.hold
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	grant := pacing.Grant{Granted: ask.Permits, Runs: []pacing.WaitRun{{Burst: 1, Permits: ask.Permits}}}
	var repeated []int
	for i, request := range requests {
		if c.remembered[request] {
			repeated = append(repeated, i)
		}
	}
	if repeated != nil && joined != nil {
		return pacing.Grant{}, &repeatedError{repeated}
	}
	for _, request := range requests {
		c.remembered[request] = true
	}
	grant.Replayed = repeated != nil
	return grant, nil
}

// Requests with ids share a call. A repetition of one of them waits for the next call. When the store remembers one of
// them, it is asked for on its own, and the others share a call again.
func TestRequestsWithIDsShareACall(t *testing.T) {
	t.Parallel()
	c := &idCalls{hold: make(chan struct{}), remembered: map[pacing.Request]bool{}}
	j := &joints{open: map[string]*joint{}, take: c.take}
	ask := func(request byte, permits int) *pacing.Ask {
		return &pacing.Ask{Request: pacing.Request{request}, Permits: permits, Targets: []pacing.Target{
			{Pacer: "p", Limits: []pacing.Limit{{Max: 9, Window: time.Second}}}}}
	}
	var all sync.WaitGroup
	var replayed atomic.Int64
	key := jointKey(ask(1, 1))
	call := func(waiting int, request byte, permits int) {
		all.Go(func() {
			grant, err := j.Take(t.Context(), ask(request, permits))
			assert.NoError(t, err)
			assert.Equal(t, permits, grant.Granted)
			if grant.Replayed {
				replayed.Add(1)
			}
		})
		testkit.Eventually(t, func() bool { return j.waitingFor(key) == waiting })
	}
	call(0, 1, 2)
	for i := range 6 {
		call(1+i, byte(2+i), 1+i)
	}
	call(7, 3, 2) // the second call ends before it
	call(8, 9, 1)
	call(9, 10, 1)
	close(c.hold)
	all.Wait()
	j.runs.Wait()
	require.Len(t, c.calls[1], 6)
	require.Equal(t, []pacing.Request{{3}, {9}, {10}}, c.calls[2])
	require.ElementsMatch(t, [][]pacing.Request{{{3}}, {{9}, {10}}}, c.calls[3:])
	require.EqualValues(t, 1, replayed.Load())
	require.Equal(t, -1, j.waitingFor(key))
}

// A call waits for the callers of the call before it, but not longer than gatherFor.
func TestCallsWaitForTheCallersOfTheLastOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var calls []int
		j := &joints{open: map[string]*joint{}}
		j.take = func(_ context.Context, ask *pacing.Ask, _ []*pacing.Ask) (pacing.Grant, error) {
			j.mu.Lock()
			calls = append(calls, ask.Permits)
			j.mu.Unlock()
			time.Sleep(10 * gatherFor)
			return pacing.Grant{Granted: ask.Permits, Runs: []pacing.WaitRun{{Burst: 1, Permits: ask.Permits}}}, nil
		}
		one := func() *pacing.Ask { return askOf("p", 1, 0, pacing.Limit{Max: 9, Window: time.Second}) }
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 3 {
					_, err := j.Take(t.Context(), one())
					assert.NoError(t, err)
					time.Sleep(gatherFor / 4)
				}
			})
		}
		all.Wait()
		require.Equal(t, []int{1, 8, 8, 7}, calls, "the first caller asks alone, and comes back in time")
		j.runs.Wait()
		require.Equal(t, -1, j.waitingFor(jointKey(one())), "nothing is kept")

		began := time.Now()
		for range 2 {
			_, err := j.Take(t.Context(), one())
			require.NoError(t, err)
		}
		require.Equal(t, 20*gatherFor, time.Since(began), "a caller alone waits for nobody")
	})
}
