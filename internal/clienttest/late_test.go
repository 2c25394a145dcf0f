package clienttest

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/server/wire"
)

// permitService grants permits from memory, and its proxy holds answers back. It runs by the clock of a bubble.
type permitService struct {
	pacers *pacing.Pacers
	// held returns how long the answer that was made now is held back.
	held func(now time.Time) time.Duration
	lag  time.Duration // way there, and way back
}

func (s *permitService) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := pass(r.Context(), s.lag); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	asked, err := wire.DecodePermits(body)
	if err != nil {
		return nil, err
	}
	given, err := s.pacers.Take(r.Context(), &pacing.Call{Pacers: asked.Pacers, Permits: asked.Permits,
		MaxWait: asked.MaxWait, RequestID: asked.RequestID})
	if err != nil {
		return nil, err
	}
	if err := pass(r.Context(), s.lag+s.held(time.Now())); err != nil {
		return nil, err
	}
	answer := wire.EncodePermits(nil, "", given)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(answer))}, nil
}

// pass lets time pass in the bubble.
func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stalls holds back everything at the end of each period: what is made in a stall comes when the period is over.
func stalls(period, lasts time.Duration) func(time.Time) time.Duration {
	start := time.Now()
	return func(now time.Time) time.Duration {
		left := period - now.Sub(start)%period
		if left > lasts {
			return 0
		}
		return left
	}
}

// busiest is the most sends in any window, wherever it begins.
func busiest(sends []time.Time, window time.Duration) (most int) {
	first := 0
	for i, at := range sends {
		for !sends[first].After(at.Add(-window)) {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// greedy runs a sender for each function, all of them with something to send at every time, and returns their sends.
func greedy(t *testing.T, pacer string, lasts time.Duration, workers int,
	held ...func(time.Time) time.Duration) (sends []time.Time) {
	t.Helper()
	service := pacing.New(pacingtest.NewMemory(time.Now), &pacers)
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, h := range held {
		c, err := client.New(client.Config{URL: "http://capper", MinBackoff: 10 * time.Millisecond,
			HTTP: &http.Client{Transport: &permitService{service, h, time.Millisecond}}})
		require.NoError(t, err)
		p, err := client.NewPacer(c, client.PacerConfig{Pacers: []string{pacer}})
		require.NoError(t, err)
		running.Go(func() {
			own := starts(ctx, t, workers, p.Wait)
			mu.Lock()
			defer mu.Unlock()
			sends = append(sends, own...)
		})
	}
	running.Wait()
	synctest.Wait()
	slices.SortFunc(sends, time.Time.Compare)
	return sends
}

func prompt(time.Time) time.Duration { return 0 }

// Of two senders one gets its answers up to 1.9 s late, each 4 s: the provider sees no burst.
func TestAnswersThatWereHeldUpAreNoPermits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pacer  string
		meant  int // in any second
		spread int // more sends, which come closer together than their slots
		rate   int // sends a second that both together reach
	}{
		{"spaced", 250, 25, 240}, {"advised", 100, 0, 85},
	} {
		t.Run(c.pacer, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const lasts = 30 * time.Second
				sends := greedy(t, c.pacer, lasts, 64, prompt, stalls(4*time.Second, 1900*time.Millisecond))
				most := busiest(sends, time.Second)
				t.Logf("%d sends, %d in the busiest second", len(sends), most)
				require.LessOrEqual(t, most, c.meant+c.spread)
				require.Greater(t, len(sends), c.rate*int(lasts/time.Second))
			})
		})
	}
}

// Whatever holds answers up, and however many senders go on at once: a send is at most a second later than its slot,
// so no window holds more sends than a window that is a second longer has slots.
func TestNoPermitIsUsedMoreThanASecondLate(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			var held []func(time.Time) time.Duration
			for range 6 {
				held = append(held, stalls(8*time.Second, time.Duration(random.Int64N(int64(7*time.Second)))))
			}
			sends := greedy(t, "burst", 40*time.Second, 64, held...)
			for _, seconds := range []int{1, 2, 5} {
				most := busiest(sends, time.Duration(seconds)*time.Second)
				t.Logf("seed %d: %d sends, %d in the busiest %d s", seed, len(sends), most, seconds)
				require.LessOrEqual(t, most, 100*(seconds+1))
			}
		})
	}
}
