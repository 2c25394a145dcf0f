package clienttest

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/cli"
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
	answer := wire.EncodePermits(nil, &wire.PermitsRequest{}, given)
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

// scripted answers each call for permits with the next wait, and the last one again.
type scripted struct{ waits []time.Duration }

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := pass(r.Context(), time.Millisecond); err != nil {
		return nil, err
	}
	var asked api.PermitsRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	answer, err := json.Marshal(api.Permits{Granted: asked.Permits,
		Slots: []api.Slot{{WaitMS: api.Millis(s.waits[0]), Permits: asked.Permits}}})
	s.waits = s.waits[min(1, len(s.waits)-1):]
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(answer))}, err
}

// A later call may be granted the room before slots that a slow pacer put off. These permits are used first, and in
// time.
func TestPermitsOfEarlierSlotsAreUsedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service := &scripted{[]time.Duration{900 * time.Millisecond, 10 * time.Millisecond, time.Minute}}
		c, err := client.New(client.Config{URL: "http://capper", HTTP: &http.Client{Transport: service}})
		require.NoError(t, err)
		p, err := client.NewPacer(c, client.PacerConfig{Pacers: []string{"spaced"}, Ahead: time.Millisecond})
		require.NoError(t, err)
		began := time.Now()
		var waited [2]time.Duration
		var running sync.WaitGroup
		for i := range waited {
			running.Go(func() {
				require.NoError(t, p.Wait(t.Context()))
				waited[i] = time.Since(began)
			})
			require.NoError(t, pass(t.Context(), 100*time.Millisecond))
		}
		running.Wait()
		slices.Sort(waited[:])
		require.Less(t, waited[0], 200*time.Millisecond)
		require.InDelta(t, 901*time.Millisecond, waited[1], float64(5*time.Millisecond))
		require.Zero(t, p.Dropped())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _ = p.Close(ctx)
	})
}

// documentedLoop sends by the loop of docs/integration.md ("Pacing"), and returns when the sends began.
func documentedLoop(ctx context.Context, c *client.Client, pacer string) (sends []time.Time) {
	for ctx.Err() == nil {
		request := api.PermitsRequest{Pacers: []string{pacer}, Permits: 50, MaxWait: api.Wait(5 * time.Second),
			RequestID: crand.Text()}
		first := time.Now()
		var asked, arrived time.Time
		var answer *api.Permits
		for done := false; !done; done = answer.Granted == 0 || arrived.Sub(asked) <= 100*time.Millisecond {
			asked = time.Now()
			var err error
			if answer, err = c.Permits(ctx, request); err != nil {
				return sends
			}
			arrived = time.Now()
		}
		for _, slot := range answer.Slots {
			for i := range slot.Permits {
				wait := time.Duration(slot.WaitMS) + time.Duration(i)*time.Duration(slot.EveryMS)
				if pass(ctx, time.Until(arrived.Add(wait))) != nil {
					return sends
				}
				now := time.Now()
				passed := answer.Replayed && slot.WaitMS == 0 && now.Sub(first) > 100*time.Millisecond
				if !passed && now.Sub(asked.Add(wait)) <= answer.UsableFor() {
					sends = append(sends, now)
				}
			}
		}
		if answer.Granted == 0 {
			_ = pass(ctx, max(100*time.Millisecond, time.Duration(*answer.RetryAfterMS)-5*time.Second))
		}
	}
	return sends
}

// The loop that the documents give has no bursts either, when one of two senders gets its answers late.
func TestTheDocumentedLoopLetsLatePermitsGo(t *testing.T) {
	t.Parallel()
	for pacer, most := range map[string]int{"spaced": 275, "advised": 100} {
		synctest.Test(t, func(t *testing.T) {
			service := pacing.New(pacingtest.NewMemory(time.Now), &pacers)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var both [2][]time.Time
			var running sync.WaitGroup
			for i, held := range []func(time.Time) time.Duration{prompt, stalls(4*time.Second, 1900*time.Millisecond)} {
				c, err := client.New(client.Config{URL: "http://capper",
					HTTP: &http.Client{Transport: &permitService{service, held, time.Millisecond}}})
				require.NoError(t, err)
				running.Go(func() { both[i] = documentedLoop(ctx, c, pacer) })
			}
			running.Wait()
			synctest.Wait()
			sends := slices.Concat(both[0], both[1])
			slices.SortFunc(sends, time.Time.Compare)
			t.Logf("%s: %d sends, %d in the busiest second", pacer, len(sends), busiest(sends, time.Second))
			require.LessOrEqual(t, busiest(sends, time.Second), most)
			require.Greater(t, len(sends), 80*30)
		})
	}
}

// What capper pace writes has no bursts, though its permits come late.
func TestPacedLinesLetLatePermitsGo(t *testing.T) {
	t.Parallel()
	for pacer, most := range map[string]int{"spaced": 275, "advised": 100} {
		synctest.Test(t, func(t *testing.T) {
			service := pacing.New(pacingtest.NewMemory(time.Now), &pacers)
			late := &permitService{service, stalls(4*time.Second, 1900*time.Millisecond), time.Millisecond}
			c, err := client.New(client.Config{URL: "http://capper", HTTP: &http.Client{Transport: late}})
			require.NoError(t, err)
			p, err := client.NewPacer(c, client.PacerConfig{Pacers: []string{pacer}})
			require.NoError(t, err)
			written := &writes{}
			copied := &cli.Copy{From: strings.NewReader(strings.Repeat("line\n", 1500)), To: written, Take: p.WaitStart,
				Reached: func(int64) {}}
			require.NoError(t, copied.Run(t.Context()))
			require.Len(t, written.at, 1500)
			require.LessOrEqual(t, busiest(written.at, time.Second), most)
		})
	}
}

// writes notes when each line was written.
type writes struct{ at []time.Time }

func (w *writes) Write(p []byte) (int, error) {
	for range bytes.Count(p, []byte{'\n'}) {
		w.at = append(w.at, time.Now())
	}
	return len(p), nil
}

// A start is valid until a second after the slot of its permit, however long the answer took; and what nobody started
// is counted.
func TestStartsEndWithTheirPermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := pacingtest.NewMemory(time.Now)
		granted := &grants{Store: store, oracle: pacingtest.NewOracle(), seen: map[pacing.Request]bool{}}
		slow := &permitService{pacing.New(granted, &pacers),
			func(time.Time) time.Duration { return 60 * time.Millisecond }, time.Millisecond}
		c, err := client.New(client.Config{URL: "http://capper", HTTP: &http.Client{Transport: slow}})
		require.NoError(t, err)
		p, err := client.NewPacer(c, client.PacerConfig{Pacers: []string{"spaced"}})
		require.NoError(t, err)
		var untils []time.Time
		for range 300 {
			start, err := p.WaitStart(t.Context(), 1)
			require.NoError(t, err)
			require.Equal(t, 1, start.Permits)
			require.Positive(t, time.Until(start.Until))
			untils = append(untils, start.Until)
		}
		require.NoError(t, pass(t.Context(), 5*time.Second))
		require.EqualValues(t, len(granted.slots)-300, p.Dropped())
		for i, until := range untils {
			age := until.Sub(granted.slots[i])
			require.LessOrEqual(t, age, time.Second)
			require.Greater(t, age, 900*time.Millisecond)
		}
	})
}
