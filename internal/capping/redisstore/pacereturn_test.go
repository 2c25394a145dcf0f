package redisstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
)

// givesBack gives back permits and compares the stored logs and the stored request with those of pacing.
func givesBack(t *testing.T, s *Store, r *referee, ask *pacing.Ask, used int) (slots int) {
	t.Helper()
	keys, client := pacerKeys(t, s)
	text, err := client.Get(t.Context(), keys.Request(ask.Request)).Bytes()
	require.NoError(t, err)
	held, err := pacing.DecodeRemembered(text)
	require.NoError(t, err)
	read := func() (logs []*pacing.Log) {
		for _, target := range ask.Targets {
			log := &pacing.Log{}
			text, err := client.Get(t.Context(), keys.Log(target.Pacer, target.Message)).Result()
			if err == nil {
				stored, err := script.DecodePacerLog(text)
				require.NoError(t, err)
				log = stored.Log
			}
			logs = append(logs, log)
		}
		return logs
	}
	logs := read()
	got, err := s.ReturnPermits(t.Context(), ask, used)
	require.NoError(t, err)
	want := held.GiveBack(got.At, ask, used, logs)
	require.Equal(t, want, got)
	for i, log := range read() {
		require.ElementsMatch(t, logs[i].Ahead, log.Ahead)
		require.True(t, slices.Equal(logs[i].Runs, log.Runs), "%+v and not %+v", log.Runs, logs[i].Runs)
		if len(log.Runs)+len(log.Ahead) > 0 {
			require.Equal(t, logs[i].Total, log.Total)
		}
		r.logs[ask.Targets[i].Pacer+":"+ask.Targets[i].Message] = log
		slots += got.Targets[i]
	}
	text, err = client.Get(t.Context(), keys.Request(ask.Request)).Bytes()
	require.NoError(t, err)
	require.Equal(t, held.Append(nil), text)
	r.requests[ask.Request] = r.requests[ask.Request][:got.Kept]
	return slots
}

// The script and pacing.Log.Return implement the same rule, and Place and pace.lua find what they leave.
func TestReturnScriptAgreesWithReturn(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	back := 0
	for seed := range uint64(60) {
		r, referee := rand.New(rand.NewPCG(seed, 3)), newReferee()
		var targets []pacing.Target
		var asked []pacing.Ask
		for i := range 1 + r.IntN(3) {
			target := pacing.Target{Pacer: fmt.Sprintf("back%d-%d", seed, i), Limits: randomLimits(r)}
			if r.IntN(3) == 0 {
				target.Message = "0a1b"
			}
			targets = append(targets, target)
		}
		for range 20 {
			if n := len(asked); n > 0 && r.IntN(3) == 0 {
				ask := asked[r.IntN(n)]
				used := r.IntN(2) * r.IntN(ask.Permits)
				back += givesBack(t, s, referee, &ask, used)
				again, err := s.ReturnPermits(t.Context(), &ask, used)
				require.NoError(t, err)
				require.Zero(t, again.Permits, "twice is once")
			}
			ask := pacing.Ask{Targets: targets[r.IntN(len(targets)):],
				Permits: 1 + r.IntN([]int{2, 20, 400}[r.IntN(3)]),
				MaxWait: time.Duration(r.IntN([]int{1_000_000, 100_000_000}[r.IntN(2)])) * time.Microsecond,
				Request: pacing.Request{byte(r.IntN(100)), 4: 9, 5: byte(seed)}}
			grant, err := s.TakePermits(t.Context(), &ask)
			if _, reused := err.(*pacing.ReuseError); reused {
				continue
			}
			require.NoError(t, err, "seed %d", seed)
			referee.check(t, &ask, &grant)
			if grant.Granted > 0 {
				asked = append(asked, ask)
			}
		}
	}
	require.Greater(t, back, 1000)
}

// A log from which everything goes back is removed, and one that keeps slots keeps its time to live.
func TestReturnWritesLogs(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	keys, client := pacerKeys(t, s)
	limit := pacing.Limit{Max: 2, Window: time.Hour}
	full := askOf("p", 2, 0, limit)
	take(t, s, full)
	ask := askOf("p", 4, 3*time.Hour, limit)
	ask.Request = pacing.Request{7}
	require.Equal(t, 4, take(t, s, ask).Granted)
	ttl := client.PTTL(t.Context(), keys.Log("p", "")).Val()
	back, err := s.ReturnPermits(t.Context(), ask, 1)
	require.NoError(t, err)
	require.Equal(t, []int{3}, back.Targets)
	require.Greater(t, client.PTTL(t.Context(), keys.Log("p", "")).Val(), ttl-time.Hour)
	require.Positive(t, client.PTTL(t.Context(), keys.Request(ask.Request)).Val())
	back, err = s.ReturnPermits(t.Context(), ask, 0)
	require.NoError(t, err)
	require.Equal(t, []int{1}, back.Targets)
	again := askOf("p", 9, 2*time.Hour, limit)
	again.Request = pacing.Request{8}
	require.Equal(t, 4, take(t, s, again).Granted)

	log, err := client.Get(t.Context(), keys.Log("p", "")).Result()
	require.NoError(t, err)
	stored, err := script.DecodePacerLog(log)
	require.NoError(t, err)
	require.Equal(t, int64(6), stored.Log.Total)

	require.NoError(t, client.Set(t.Context(), keys.Log("q", ""), "damaged", time.Hour).Err())
	ask.Targets[0].Pacer = "q"
	_, err = s.ReturnPermits(t.Context(), ask, 0)
	require.ErrorAs(t, err, new(*pacing.ReuseError), "another request")
	require.NoError(t, client.Set(t.Context(), keys.Log("p", ""), "damaged", time.Hour).Err())
	_, err = s.ReturnPermits(t.Context(), again, 0)
	require.ErrorContains(t, err, "not valid")
}
