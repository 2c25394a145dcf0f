package clienttest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/testkit"
)

// noneLeft demands that what pacers do on their own has ended.
func noneLeft(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		stacks := make([]byte, 1<<20)
		return !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "client.(*Pacer)")
	})
}

// waiting is how many callers stand in line.
func waiting() (n int) {
	stacks := make([]byte, 1<<20)
	for _, one := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(one, " [select") && strings.Contains(one, "client.(*Pacer).wait(") {
			n++
		}
	}
	return n
}

// forgotten waits until every permit of the pacer is older than its window.
func forgotten(t *testing.T, url, pacer string) {
	c := newClient(t, client.Config{URL: url})
	testkit.Eventually(t, func() bool {
		state, err := c.Pacer(t.Context(), pacer)
		return err == nil && state.Used != nil && *state.Used == 0
	}, "permits of %s count no more", pacer)
}

// Half of the answers are lost, and workers keep the pace: nothing is taken twice.
func TestLostAnswersTakeNothingTwice(t *testing.T) {
	steadily(t, func() bool {
		url, g := paced(t, flaky(func() bool { return rand.N(2) == 0 }))
		var retried atomic.Int64
		p, err := client.NewPacer(newClient(t, client.Config{URL: url, MaxBackoff: 5 * time.Millisecond}),
			client.PacerConfig{Pacers: []string{"spaced"}, OnRetry: func(error) { retried.Add(1) }})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		started := starts(ctx, t, 32, p.Wait)
		slots := g.granted()
		neverEarly(t, started, slots)
		noneLeft(t)
		t.Logf("%d started, %d granted, %d repeated", len(started), len(slots), retried.Load())
		// those who waited at the end, and what was asked for ahead
		return len(started) > 0 && len(slots) < len(started)+100 &&
			retried.Load() > 0
	})
}

// A service that is overloaded is waited for, as long as it says, and one that is
// away, until it is back.
func TestAServiceThatIsAwayIsWaitedFor(t *testing.T) {
	var calls atomic.Int64
	var away atomic.Bool
	url, g := paced(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case calls.Add(1) == 1:
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusServiceUnavailable)
			case away.Load():
				panic(http.ErrAbortHandler)
			default:
				next.ServeHTTP(w, r)
			}
		})
	})
	var failing atomic.Bool
	var outages, answered, unasked atomic.Int64
	back := sync.OnceFunc(func() { time.AfterFunc(500*time.Millisecond, func() { away.Store(false) }) })
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"},
		OnAnswer: func() {
			answered.Add(1)
			if !failing.Swap(false) {
				unasked.Add(1)
			}
		},
		OnRetry: func(error) {
			if !failing.Swap(true) {
				outages.Add(1)
			}
			if away.Load() {
				back()
			}
		}})
	start := time.Now()
	require.NoError(t, p.Wait(t.Context()))
	require.Greater(t, time.Since(start), time.Second)
	first := answered.Load()
	require.Equal(t, outages.Load(), first)
	require.Positive(t, first)

	away.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var later atomic.Int64
	started := starts(ctx, t, 32, func(ctx context.Context) error {
		err := p.Wait(ctx)
		if err == nil && !away.Load() && later.Add(1) == 100 {
			cancel()
		}
		return err
	})
	neverEarly(t, started, g.granted()[1:])
	require.GreaterOrEqual(t, later.Load(), int64(100), "those who waited go on")
	noneLeft(t)
	// On a busy machine an answer may be late, which is retried too: such an outage may be under way at the end.
	require.Greater(t, answered.Load(), first)
	require.Zero(t, unasked.Load(), "an answer is told only after failed calls")
	if !failing.Load() {
		require.Equal(t, outages.Load(), answered.Load(), "once for each time that it was away")
	}
}

// What is refused is told to all who wait, and a later call asks again.
func TestRefusalsAreToldToAll(t *testing.T) {
	var known atomic.Bool
	url, _ := paced(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !known.Load() {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(
					`{"error":{"code":"invalid_request","message":"pacers[0]: must be a configured pacer","field":"pacers[0]"}}`))
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"minute"}})
	var running sync.WaitGroup
	for range 32 {
		running.Go(func() {
			err := p.Wait(t.Context())
			require.True(t, client.HasCode(err, client.CodeInvalidRequest), "%v", err)
		})
	}
	running.Wait()
	known.Store(true)
	require.Eventually(t, func() bool { return p.Wait(t.Context()) == nil }, 2*time.Minute, time.Millisecond)
}

// A queue that is longer than it may be is told at once, and how long it is; who
// has a place in it keeps it.
func TestAQueueThatIsTooLong(t *testing.T) {
	for pacer, cfg := range map[string]client.PacerConfig{
		"spaced":  {Pacers: []string{"spaced"}, MaxWait: 100 * time.Millisecond},
		"bounded": {Pacers: []string{"bounded"}, MaxWait: time.Hour},
	} {
		t.Run(pacer, func(t *testing.T) {
			steadily(t, func() bool {
				url, g := paced(t, nil)
				p := newPacer(t, url, cfg)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var running sync.WaitGroup
				var served, refused atomic.Int64
				for range 200 {
					running.Go(func() {
						err := p.Wait(ctx)
						if err == nil {
							served.Add(1)
							return
						}
						var long *client.QueueTooLongError
						require.ErrorAs(t, err, &long)
						require.ErrorIs(t, err, client.ErrQueueTooLong)
						require.Equal(t, [2]string{pacer, "rate"}, [2]string{long.Pacer, long.Limit})
						require.Positive(t, long.Wait)
						require.Less(t, long.Wait, 500*time.Millisecond)
						refused.Add(1)
					})
				}
				running.Wait()
				t.Logf("%d served, %d refused in %d calls", served.Load(), refused.Load(), g.calls())
				return served.Load() > 0 && refused.Load() > 100 && g.calls() < 30
			})
		})
	}
}

// Also when permits had been asked for ahead, for nobody, and were refused.
func TestAQueueThatIsTooLongIsToldSoon(t *testing.T) {
	url, _ := paced(t, nil)
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"slow"}, MaxWait: 30 * time.Minute})
	require.NoError(t, p.Wait(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		require.ErrorIs(t, p.Wait(ctx), client.ErrQueueTooLong)
		noneLeft(t)
	}
}

// A pacer with shares grants only near slots to calls without a share. Beside a pacer whose slot is far, a caller waits
// until both are near, but no longer than it accepts.
func TestSlotsThatStayFreeAreWaitedFor(t *testing.T) {
	url, g := paced(t, nil)
	c := newClient(t, client.Config{URL: url})
	both := client.PacerConfig{Pacers: []string{"shared", "few"}, MaxWait: 20 * time.Second}
	p := newPacer(t, url, both)
	for range 5 {
		require.NoError(t, p.Wait(t.Context()))
	}
	noneLeft(t)
	require.Less(t, g.calls(), 250, "no faster than Ahead")

	both.MaxWait = 6 * time.Second
	short := newPacer(t, url, both)
	taken, err := c.Permits(t.Context(), api.PermitsRequest{Pacers: []string{"few"}, Permits: 4,
		MaxWait: api.Wait(20 * time.Second)})
	require.NoError(t, err)
	require.Equal(t, 4, taken.Granted)
	ended := make(chan error)
	go func() { ended <- short.Wait(t.Context()) }()
	testkit.Eventually(t, func() bool { return waiting() > 0 })
	_, err = c.Permits(t.Context(), api.PermitsRequest{Pacers: []string{"few"}, Permits: 20,
		MaxWait: api.Wait(25 * time.Second)})
	require.NoError(t, err)
	require.ErrorIs(t, testkit.Receive(t, ended), client.ErrQueueTooLong, "others were faster")
	require.ErrorIs(t, short.Wait(t.Context()), client.ErrQueueTooLong)
}

// Who waits however long it takes makes nobody wait for long at the other pacers of
// his calls.
func TestPlacesAreNotTakenFarAhead(t *testing.T) {
	url, g := paced(t, nil)
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced", "slow"}})
	require.NoError(t, p.Wait(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	require.Empty(t, starts(ctx, t, 32, p.Wait), "slow gives one an hour")
	require.Less(t, g.calls(), 20)
	other := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}, MaxWait: 500 * time.Millisecond})
	require.NoError(t, other.Wait(t.Context()))

	steadily(t, func() bool {
		url, _ := paced(t, nil) // the try before has taken the next slots of its pacer
		bounded := newPacer(t, url, client.PacerConfig{Pacers: []string{"bounded"}})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return len(starts(ctx, t, 32, bounded.Wait)) > 18 // of 20, though 29 at a time would have to wait too long
	})
}

// Callers that give up make room for those behind them: their permits are not lost.
func TestCallersThatGiveUp(t *testing.T) {
	steadily(t, func() bool {
		url, g := paced(t, nil)
		p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		var running sync.WaitGroup
		for range 200 {
			running.Go(func() {
				if err := p.Wait(ctx); err != nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		}
		require.ErrorIs(t, p.WaitN(ctx, 100), context.DeadlineExceeded)
		running.Wait()
		before := len(g.granted())
		for range before - 20 { // of the slots that were left
			require.NoError(t, p.Wait(t.Context()))
		}
		after := len(g.granted())
		require.ErrorIs(t, p.Wait(ctx), context.DeadlineExceeded, "whose time is up gets nothing")
		noneLeft(t)
		return after < before+60
	})
}

// Nobody who came later goes first, however many somebody waits for.
func TestCallersAreServedInOrder(t *testing.T) {
	url, _ := paced(t, nil)
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"spaced"}})
	var order []int
	var mu sync.Mutex
	var running sync.WaitGroup
	start := time.Now()
	for i, n := range []int{1, 50, 40, 60, 40} {
		running.Go(func() {
			require.NoError(t, p.WaitN(t.Context(), n))
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
		testkit.Eventually(t, func() bool { // until it stands in line, or is served
			mu.Lock()
			defer mu.Unlock()
			return waiting()+len(order) > i
		})
	}
	running.Wait()
	require.Equal(t, []int{0, 1, 2, 3, 4}, order)
	require.GreaterOrEqual(t, time.Since(start), 190*4*time.Millisecond)
	for _, n := range []int{0, -1, 100_001} {
		require.ErrorContains(t, p.WaitN(t.Context(), n), "must be 1 to 100000")
	}
}

// Who was away for longer than a window does not use what he had asked for ahead.
func TestPermitsThatAreTooOldAreThrownAway(t *testing.T) {
	url, g := paced(t, nil)
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"short"}})
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	starts(ctx, t, 4, p.Wait)
	noneLeft(t)
	forgotten(t, url, "short")
	// The client's slots are later than the server's by the time of a call: another permit makes one more window pass.
	_, err := newClient(t, client.Config{URL: url}).Permits(t.Context(),
		api.PermitsRequest{Pacers: []string{"short"}, Permits: 1})
	require.NoError(t, err)
	forgotten(t, url, "short")
	before := len(g.granted())
	require.NoError(t, p.Wait(t.Context()))
	noneLeft(t)
	require.Greater(t, len(g.granted()), before)
}

// A lost answer that comes the second time, long after the first: its slots are too old.
func TestAnswersThatAreTooOldAreThrownAway(t *testing.T) {
	var calls atomic.Int64
	service := make(chan string, 1)
	url, g := paced(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && calls.Add(1) == 1 {
				next.ServeHTTP(httptest.NewRecorder(), r)
				forgotten(t, <-service, "short")
				panic(http.ErrAbortHandler)
			}
			next.ServeHTTP(w, r)
		})
	})
	service <- url
	p := newPacer(t, url, client.PacerConfig{Pacers: []string{"short"}})
	require.NoError(t, p.Wait(t.Context()))
	require.GreaterOrEqual(t, calls.Load(), int64(3), "the one that was lost, its repetition, and one for a slot "+
		"that is new")
	require.GreaterOrEqual(t, len(g.granted()), 2)
}

// A round trip of 60 ms costs no rate, and nobody who waits causes a call of his own.
func TestLongRoundTripsCostNoRate(t *testing.T) {
	for pacer, fair := range map[string]int{"spaced": 500, "burst": 200, "short": 1000} {
		t.Run(pacer, func(t *testing.T) {
			steadily(t, func() bool {
				url, g := paced(t, func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						way := time.NewTicker(30 * time.Millisecond) // there, and back
						defer way.Stop()
						<-way.C
						next.ServeHTTP(w, r)
						<-way.C
					})
				})
				p := newPacer(t, url, client.PacerConfig{Pacers: []string{pacer}})
				warm, done := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer done()
				before := starts(warm, t, 32, p.Wait)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				after := starts(ctx, t, 32, p.Wait)
				neverEarly(t, append(before, after...), g.granted())
				t.Logf("%d before, %d started, %d granted in %d calls", len(before), len(after), len(g.granted()),
					g.calls())
				return len(after) >= fair*90/100 && g.calls() < 60
			})
		})
	}
}

func TestPacersAreChecked(t *testing.T) {
	c := newClient(t, client.Config{URL: "http://127.0.0.1:1"})
	for _, cfg := range []client.PacerConfig{
		{}, {Pacers: []string{""}}, {Pacers: make([]string, 9)}, {Pacers: []string{"p"}, MaxWait: -1},
		{Pacers: []string{"p"}, MaxWait: 25 * time.Hour},
		{Pacers: []string{"p"}, Ahead: -1}, {Pacers: []string{"p"}, Ahead: time.Hour},
	} {
		_, err := client.NewPacer(c, cfg)
		require.ErrorContains(t, err, "client.PacerConfig.")
	}
	p, err := client.NewPacer(c, client.PacerConfig{Pacers: []string{"p"}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	require.ErrorIs(t, p.Wait(ctx), context.DeadlineExceeded)
	noneLeft(t)
}
