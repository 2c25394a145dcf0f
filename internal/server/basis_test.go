package server_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/segments"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
)

// turning is a service whose policy and generation change all the time: policy-N allows N sends a day, and generation
// N suppresses the users below 10*(N+1). With policy-1 the audience reached contains only the suppressed users, with
// policy-0 everybody.
type turning struct {
	*service
	used        atomic.Pointer[segments.Snapshot]
	policies    []*capping.Policy
	named       map[*capping.Policy]*audience.Named
	generations []*segments.Snapshot
	stop        chan struct{}
	turner      sync.WaitGroup
}

func (g *turning) pin(name string) (*segments.Snapshot, error) {
	for _, s := range g.generations {
		if s.Generation() == name {
			return s, nil
		}
	}
	return g.used.Load(), nil
}

func newTurning(t *testing.T) *turning {
	g := &turning{stop: make(chan struct{}), named: map[*capping.Policy]*audience.Named{}}
	for n := range 2 {
		out, everybody := bitmap.Range(0, uint32(10*(n+1))), bitmap.Range(0, 100)
		m, err := segments.NewManifest(segmentstest.Epoch.Add(time.Duration(n)*time.Hour), "test", "",
			[]segments.Segment{segments.Describe("vip", everybody)},
			segments.Set{Segment: segments.Describe("opted-out", out)})
		require.NoError(t, err)
		g.generations = append(g.generations, (&segments.Generation{Manifest: m, Bitmaps: []*bitmap.Bitmap{everybody},
			Sets: []*bitmap.Bitmap{out}}).Snapshot())
		g.policies = append(g.policies, &capping.Policy{
			Version:  fmt.Sprint("policy-", n),
			Default:  []capping.Limit{{Name: "daily", Max: n, Window: 24 * time.Hour}},
			Suppress: []capping.Suppression{{Set: "opted-out"}},
		})
		g.named[g.policies[n]], err = audience.NewNamed(map[string]string{"reached": []string{"vip",
			"opted-out & vip"}[n]})
		require.NoError(t, err)
	}
	g.used.Store(g.generations[0])
	clock := newService(t).clock
	store := openStore(t, clock.Now)
	g.service = newServiceOver(t, store, clock, func(cfg *server.Config) {
		cfg.Capper = capping.New(store, func() capping.Segments { return snapshot{Snapshot: g.used.Load()} },
			g.policies[0],
			clock.Now)
		cfg.Generations, cfg.Audiences = g.pin, func(p *capping.Policy) *audience.Named { return g.named[p] }
	})
	g.turner.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-g.stop:
				return
			default:
				g.capper.SetPolicy(g.policies[n%2])
				g.used.Store(g.generations[n/2%2])
				runtime.Gosched()
			}
		}
	})
	t.Cleanup(func() { close(g.stop); g.turner.Wait() })
	return g
}

// requireOf checks a summary of users 0 to 99 against the named policy and generation.
func (g *turning) requireOf(version, generation string, found *api.Summary) (combination string) {
	g.t.Helper()
	for n, policy := range g.policies {
		for m, snapshot := range g.generations {
			if policy.Version != version || snapshot.Generation() != generation {
				continue
			}
			denied := map[string]int{"suppressed": 10 * (m + 1)}
			if n == 0 {
				denied["daily"] = 90 - 10*m
			}
			require.Equal(g.t, denied, found.Denied, "%s, %s", version, generation)
			require.Equal(g.t, n*(90-10*m), found.Allowed)
			require.Zero(g.t, found.Unavailable)
			return version + " " + generation
		}
	}
	g.t.Fatalf("no policy %q or no generation %q", version, generation)
	return ""
}

// TestAnAnswerIsOfOnePolicyAndOneGeneration makes forecasts, previews and decisions while policies and generations
// change. Each answer must match the versions that it names.
func TestAnAnswerIsOfOnePolicyAndOneGeneration(t *testing.T) {
	t.Parallel()
	g := newTurning(t)
	var times []string
	for i := range api.MaxForecasts {
		times = append(times, startOfTest.Add(time.Duration(i)*time.Hour).Format(time.RFC3339))
	}
	at := `"at": ["` + strings.Join(times[1:], `","`) + `"]`
	ids := strings.Trim(strings.ReplaceAll(fmt.Sprint(span(0, 100)), " ", ","), "[]")
	seen := map[string]int{}
	for calls := 0; len(seen) < 12 || calls < 40; calls++ {
		for _, users := range []string{`"user_ids": [` + ids + `]`, `"audience": "vip"`} {
			r := g.post("/v1/forecast", "{"+users+", "+at+"}")
			require.Equal(t, http.StatusOK, r.status, string(r.body))
			f := decodeAs[api.Forecast](t, r.body)
			for i := range f.Forecasts {
				seen["forecast "+g.requireOf(f.ConfigVersion, f.Generation, &f.Forecasts[i].Summary)]++
			}
			require.True(t, f.Audience == nil || f.Audience.Generation == f.Generation)
		}
		r := g.post("/v1/audience/count", `{"audience": "vip | opted-out", "channel": ""}`)
		require.Equal(t, http.StatusOK, r.status, string(r.body))
		n := decodeAs[api.AudienceCount](t, r.body)
		require.Equal(t, n.Generation, n.PreviewGeneration)
		require.EqualValues(t, n.Preview.Denied["suppressed"], n.Sets["opted-out"])
		seen["count "+g.requireOf(n.ConfigVersion, n.PreviewGeneration, n.Preview)]++
		f := decodeAs[api.FilterIDs](t, g.post("/v1/filter", `{"record": false, "user_ids": [`+ids+`]}`).body)
		seen["filter "+g.requireOf(f.ConfigVersion, f.Generation, &f.Summary)]++
	}
}

// reached returns the number of users in the audience of that name, for a generation and a policy.
func (g *turning) reached(version, generation string) int {
	switch {
	case version == g.policies[0].Version:
		return 100
	case generation == g.generations[0].Generation():
		return 10
	}
	return 20
}

// TestNamesOfAnAnswerAreOfItsPolicy selects users by a configured name during reloads. Each answer must use the
// expression of the configuration that it names.
func TestNamesOfAnAnswerAreOfItsPolicy(t *testing.T) {
	t.Parallel()
	g := newTurning(t)
	seen := map[string]int{}
	for calls := 0; len(seen) < 12 || calls < 80; calls++ {
		r := g.post("/v1/forecast", `{"audience": "reached"}`)
		require.Equal(t, http.StatusOK, r.status, string(r.body))
		f := decodeAs[api.Forecast](t, r.body)
		require.Equal(t, g.reached(f.ConfigVersion, f.Generation), f.Users)
		seen["forecast "+f.ConfigVersion+f.Generation]++

		r = g.post("/v1/audience/count", `{"audience": "reached", "channel": ""}`)
		require.Equal(t, http.StatusOK, r.status, string(r.body))
		n := decodeAs[api.AudienceCount](t, r.body)
		require.EqualValues(t, g.reached(n.ConfigVersion, n.Generation), n.Users)
		require.EqualValues(t, n.Users, n.Preview.Requested)
		require.Equal(t, map[string]string{"policy-0": "vip", "policy-1": "opted-out & vip"}[n.ConfigVersion],
			n.Expression)
		seen["count "+n.ConfigVersion+n.Generation]++

		b := decodeAs[api.FilterBitmaps](t, g.post("/v1/filter", `{"record": false, "audience": "reached"}`).body)
		require.Equal(t, g.reached(b.ConfigVersion, b.Audience.Generation), b.Audience.Users)
		require.Equal(t, b.Generation, b.Audience.Generation)
		seen["filter "+b.ConfigVersion+b.Generation]++
	}
}

// TestAPreviewOfAnOlderGeneration checks that a named older generation gives the users and the current one decides.
func TestAPreviewOfAnOlderGeneration(t *testing.T) {
	t.Parallel()
	s, g := newSetService(t)
	first := g.current().Generation()
	sets := testSets()
	sets["opted-out"] = bitmap.Range(1, 9)
	g.add(t, sets)
	n := decodeAs[api.AudienceCount](t, s.post("/v1/audience/count",
		fields{"audience": "vip", "channel": "email", "generation": first}).body)
	require.Equal(t, []string{first, g.current().Generation(), "policy-2"},
		[]string{n.Generation, n.PreviewGeneration, n.ConfigVersion})
	require.EqualValues(t, 2, n.Sets["opted-out"])
	require.Equal(t, map[string]int{"suppressed": 8}, n.Preview.Denied)
}
