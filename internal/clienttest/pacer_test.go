package clienttest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
)

// Workers, one or thirty-two, get what a pacer gives, in time, and never early.
func TestWorkersKeepThePace(t *testing.T) {
	for _, c := range []struct {
		pacer   string
		workers int
		lasts   time.Duration
		fair    int // of these permits 95 % must be used
		calls   int // at most
	}{
		{"spaced", 32, 2 * time.Second, 500, 60},
		{"spaced", 1, 2 * time.Second, 500, 60},
		{"burst", 32, 2500 * time.Millisecond, 300, 80},
		{"burst", 1, 2500 * time.Millisecond, 300, 80},
		{"short", 32, 2 * time.Second, 1000, 80},
		{"minute", 32, 20 * time.Second, 60_000, 200},
	} {
		t.Run(fmt.Sprint(c.pacer, c.workers), func(t *testing.T) {
			steadily(t, func() bool {
				url, g := paced(t, nil)
				p := newPacer(t, url, client.PacerConfig{Pacers: []string{c.pacer}})
				ctx, cancel := context.WithTimeout(t.Context(), c.lasts)
				defer cancel()
				var sum atomic.Int64
				started := starts(ctx, t, c.workers, func(ctx context.Context) error {
					err := p.Wait(ctx)
					if err == nil && sum.Add(1) == int64(c.fair) {
						cancel()
					}
					return err
				})
				slots := g.granted()
				neverEarly(t, started, slots)
				middle, latest := late(started, slots)
				t.Logf("%d started, %d granted in %d calls, late by %v, %v at most", len(started), len(slots),
					g.calls(), middle, latest)
				return len(started) > c.fair*95/100 && g.calls() <= c.calls
			})
		})
	}
}

// Eight senders that know nothing of each other share what two pacers give together:
// all of it is used, and none is given out twice.
func TestSendersShareThePace(t *testing.T) {
	steadily(t, func() bool {
		url, g := paced(t, nil)
		cfg := client.PacerConfig{Pacers: []string{"spaced", "message"}, MessageID: "promo-7"}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var senders sync.WaitGroup
		var mu sync.Mutex
		var started []time.Time
		for range 8 {
			p := newPacer(t, url, cfg)
			senders.Go(func() {
				own := starts(ctx, t, 4, p.Wait)
				mu.Lock()
				defer mu.Unlock()
				started = append(started, own...)
			})
		}
		senders.Wait()
		slots := g.granted()
		for i := 1; i < len(slots); i++ {
			require.GreaterOrEqual(t, slots[i].Sub(slots[i-1]), 4*time.Millisecond)
		}
		t.Logf("%d started, %d granted in %d calls", len(started), len(slots), g.calls())
		return len(started) > 300*90/100 && g.calls() < 8*3*20 // 100 a second are the message's
	})
}
