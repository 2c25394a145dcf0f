package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

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

func (h *heldCalls) take(_ context.Context, ask *pacing.Ask) (pacing.Grant, error) {
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
		func(a *pacing.Ask) { a.Targets[0].Message = "0b" },
		func(a *pacing.Ask) { a.Targets[0].Limits[0].Max++ }, func(a *pacing.Ask) { a.Targets[0].Limits[0].Window++ },
		func(a *pacing.Ask) { a.Targets = append(a.Targets, a.Targets[0]) },
		func(a *pacing.Ask) { a.Targets[0].Limits = append(a.Targets[0].Limits, a.Targets[0].Limits[0]) },
	} {
		require.NotEqual(t, jointKey(plain), jointKey(make1(change)))
	}
	require.False(t, joins(make1(func(a *pacing.Ask) { a.Permits = 0 })))
	require.False(t, joins(make1(func(a *pacing.Ask) { a.Request[3] = 1 })))
}
