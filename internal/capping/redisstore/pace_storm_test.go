//go:build storms

package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/testcluster"
)

// The shortcut for the most frequent call walks along a log from call to call. This test runs long histories of one
// pacer, with one permit or a few at a time.
func TestPaceScriptAgreesWithPlaceForLong(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	for seed := range uint64(12) {
		r, referee := rand.New(rand.NewPCG(seed, 3)), newReferee()
		var limits []pacing.Limit
		for range 1 + r.IntN(3) {
			limits = append(limits, pacing.Limit{
				Max:    1 + r.IntN([]int{2, 8, 40, 300}[r.IntN(4)]),
				Window: time.Duration(100+r.IntN([]int{1000, 10_000, 200_000}[r.IntN(3)])) * time.Microsecond,
			})
		}
		wait := time.Duration(r.IntN(3)) * 500 * time.Microsecond
		most := 1 + r.IntN(3)
		for call := range 400 {
			ask := askOf(fmt.Sprint("long", seed), r.IntN(most+1), wait, limits...)
			if r.IntN(100) == 0 {
				limits[0], limits[len(limits)-1] = limits[len(limits)-1], limits[0] // a reload
			}
			if r.IntN(20) == 0 {
				ask.Request = pacing.Request{1, byte(call), byte(call >> 8), byte(seed)}
			}
			grant := take(t, s, ask)
			referee.check(t, ask, &grant)
		}
	}
}

// At the bounds, which are eight pacers of five limits with full irregular logs, no call holds the server's thread
// for long, and neither does one that gives back permits.
func TestPaceScriptStaysShort(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, server.Addrs[0])
	ask := func(permits, most int) *pacing.Ask {
		ask := &pacing.Ask{Permits: permits, MaxWait: pacing.MaxWait}
		for i := range pacing.MaxPacers {
			target := pacing.Target{Pacer: fmt.Sprint("bound", i)}
			for l := range pacing.MaxLimits + 1 {
				target.Limits = append(target.Limits, pacing.Limit{Max: most + 100*(i+l), Window: time.Duration(600+i+
					l) * time.Second})
			}
			ask.Targets = append(ask.Targets, target)
		}
		return ask
	}
	for len(storedLogOrNone(t, s, "bound0").Runs) < pacing.MostRuns-200 {
		for range 100 {
			take(t, s, ask(1, 1_000_000))
		}
	}
	require.NoError(t, client.ConfigSet(t.Context(), "slowlog-log-slower-than", "100").Err())
	require.NoError(t, client.ConfigSet(t.Context(), "slowlog-max-len", "10000").Err())
	require.NoError(t, client.Do(t.Context(), "slowlog", "reset").Err())
	var requests []*pacing.Ask
	for i := range 40 {
		requests = append(requests, ask(pacing.MaxPermits, 3000))
		requests[i].Request = pacing.Request{byte(i), 77}
		require.True(t, take(t, s, requests[i]).More)
	}
	back := 0
	for i := range requests { // in the middle of the logs, then at their ends
		got, err := s.ReturnPermits(t.Context(), requests[(i+20)%40], 0)
		require.NoError(t, err)
		for _, n := range got.Targets {
			back += n
		}
	}
	t.Logf("%d slots went back", back)
	for name, sha := range map[string]string{"calls": s.scripts.Pace.SHA, "returns": s.scripts.Return.SHA} {
		var took []time.Duration
		for _, entry := range client.SlowLogGet(t.Context(), 10_000).Val() {
			if entry.Args[0] == "evalsha" && entry.Args[1] == sha {
				took = append(took, entry.Duration)
			}
		}
		slices.Sort(took)
		require.GreaterOrEqual(t, len(took), 40)
		t.Logf("%d %s at the bounds: median %v, longest %v", len(took), name, took[len(took)/2], took[len(took)-1])
	}
}

// storedLogOrNone returns the pacer's log, or an empty log.
func storedLogOrNone(t testing.TB, s *Store, pacer string) *pacing.Log {
	t.Helper()
	keys, client := pacerKeys(t, s)
	if client.Exists(t.Context(), keys.Log(pacer, "")).Val() == 0 {
		return &pacing.Log{}
	}
	return storedLog(t, s, pacer)
}

func TestPaceScriptAgreesWithPlaceOften(t *testing.T) {
	t.Parallel()
	paceScriptAgreesWithPlace(t, 30, 150)
}
