package redisstore

import (
	"context"
	"encoding"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/pacing"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

var hourly = pacing.Limit{Max: 10, Window: time.Hour}

func TestKeysOfPacersThatHoldSomethingElse(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	keys, client := pacerKeys(t, s)
	ask := askOf("p", 1, 0, hourly)
	ask.Targets[0].Message = "0a"
	ask.Targets = append(ask.Targets, pacing.Target{Pacer: "good", Limits: []pacing.Limit{hourly}})
	ask.Request = pacing.Request{1}
	for _, key := range []string{keys.Log("p", "0a"), keys.Forgotten("p"), keys.Request(ask.Request)} {
		require.NoError(t, client.HSet(t.Context(), key, "a", "b").Err())
		_, err := s.TakePermits(t.Context(), ask)
		require.ErrorContains(t, err, "the call for permits is undecided (wrong_type): the Redis key of a pacer "+
			"(rate limiter) must hold a string", key)
		require.NotContains(t, err.Error(), "users")
		require.NoError(t, client.Del(t.Context(), key).Err())
	}
	one := askOf("good", 1, 0, hourly) // the way of those that are asked most
	one.Request = ask.Request
	for _, key := range []string{keys.Log("good", ""), keys.Request(ask.Request)} {
		require.NoError(t, client.HSet(t.Context(), key, "a", "b").Err())
		_, err := s.TakePermits(t.Context(), one)
		require.ErrorContains(t, err, "wrong_type", key)
		require.NoError(t, client.Del(t.Context(), key).Err())
	}
	require.NoError(t, client.HSet(t.Context(), keys.Forgotten("p"), "a", "b").Err())
	require.ErrorContains(t, s.ForgetPacer(t.Context(), "p", ""), "forgetting the pacer is undecided (wrong_type)")
	require.NoError(t, client.Del(t.Context(), keys.Forgotten("p")).Err())

	for _, key := range []string{keys.Log("p", "0a"), keys.Log("good", ""), keys.Request(ask.Request)} {
		for _, text := range []string{"x", string(make([]byte, 64)), string(append(make([]byte, 999), 1)),
			string(append(make([]byte, 10), 2))} {
			require.NoError(t, client.Set(t.Context(), key, text, time.Hour).Err())
			_, err := s.TakePermits(t.Context(), ask)
			if key == keys.Request(ask.Request) && len(text) > 11 {
				require.IsType(t, &pacing.ReuseError{}, err)
			} else {
				require.ErrorContains(t, err, "undecided (corrupt): the stored log of a pacer (rate limiter) is not "+
					"valid: reset the pacer", "%q", text)
			}
			require.Equal(t, text, client.Get(t.Context(), key).Val(), "nothing is written")
		}
		require.NoError(t, client.Del(t.Context(), key).Err())
	}
	require.Zero(t, client.Exists(t.Context(), keys.Log("p", "0a"), keys.Log("good", "")).Val(),
		"nothing was taken of any")
	require.Equal(t, 1, take(t, s, ask).Granted)
}

func TestPermitsUnderASkewedClock(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	s := openShared(t, func(c *Config) {
		c.ClockSkew = 250 * time.Millisecond
		c.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	for _, off := range []time.Duration{time.Minute, -time.Minute} {
		ahead.Store(int64(off))
		for _, permits := range []int{0, 1, 5} {
			_, err := s.TakePermits(t.Context(), askOf("p", permits, 0, hourly))
			require.ErrorContains(t, err, "the call for permits is undecided (clock)")
		}
		require.ErrorContains(t, s.ForgetPacer(t.Context(), "p", ""), "(clock)")
	}
	ahead.Store(int64(100 * time.Millisecond))
	require.Equal(t, 10, take(t, s, askOf("p", 11, 0, hourly)).Granted, "nothing was taken")
}

func TestAFullServerGivesNoPermits(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{Settings: []string{"maxmemory-policy noeviction"}})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, server.Addrs[0])
	require.Equal(t, 1, take(t, s, askOf("a", 1, 0, hourly)).Granted)
	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	for _, pacer := range []string{"a", "b"} {
		_, err := s.TakePermits(t.Context(), askOf(pacer, 1, 0, hourly))
		require.ErrorContains(t, err, "the call for permits is undecided (memory)", pacer)
	}
	require.Zero(t, take(t, s, askOf("a", 1, 0, pacing.Limit{Max: 1, Window: time.Hour})).Granted,
		"a refusal needs no memory")
	testkit.Eventually(t, func() bool { return strings.Contains(s.Health(t.Context()).Error, "OOM") })
	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.Equal(t, 9, take(t, s, askOf("a", 10, 0, hourly)).Granted)
	require.Equal(t, 10, take(t, s, askOf("b", 20, 0, hourly)).Granted)
}

// An emptied server grants no permits until capper restarts; a server that lost its scripts gets them again.
func TestPermitsOfAnEmptiedServer(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, server.Addrs[0])
	require.Equal(t, 10, take(t, s, askOf("a", 10, 0, hourly)).Granted)
	require.NoError(t, client.ScriptFlush(t.Context()).Err())
	require.Zero(t, take(t, s, askOf("a", 10, 0, hourly)).Granted)
	require.NoError(t, client.FlushAll(t.Context()).Err())
	_, err := s.TakePermits(background(t, 2*time.Second), askOf("a", 10, 0, hourly))
	require.ErrorContains(t, err, "the call for permits is undecided")
	beginAnew(t, s)
	testkit.Eventually(t, func() bool {
		_, err := s.TakePermits(t.Context(), askOf("a", 0, 0, hourly))
		return err == nil
	})
}

// The store grants only permits that replicas hold, and remembers requests the same way.
func TestPermitsAreGrantedWhenReplicasHoldThem(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	s := openTest(t, Config{Addrs: c.Addrs[:1], AttemptTimeout: 400 * time.Millisecond})
	ask := askOf("a", 3, 0, hourly)
	ask.Request = pacing.Request{1}
	require.NoError(t, c.Pause(c.Addrs[1]))
	for range 2 {
		testkit.FailsWith(t, "0 of 1 replicas confirmed in time", func() error {
			_, err := s.TakePermits(background(t, time.Second), ask)
			return err
		})
	}
	require.NoError(t, c.Resume(c.Addrs[1]))
	grant := take(t, s, ask)
	require.True(t, grant.Replayed)
	require.Equal(t, 3, grant.Granted)
	require.Equal(t, 7, take(t, s, askOf("a", 10, 0, hourly)).Granted)
}

// A request is taken once, wherever its replies are cut.
func TestPermitsWhoseAnswersAreCut(t *testing.T) {
	t.Parallel()
	between := newProxies(t)
	s := openShared(t, func(c *Config) { c.dial, c.AttemptTimeout = between.dial, 500*time.Millisecond })
	for i, cut := range []int64{0, cutAtWait, cutAfterWait} {
		between.each(func(x *proxy) { x.cut.Store(cut) })
		ask := askOf(fmt.Sprint("p", i), 4, 0, hourly)
		ask.Request = pacing.Request{byte(i), 1}
		before := between.cuts()
		testkit.Eventually(t, func() bool { // on a busy machine a call may end before its connection is cut
			_, _ = s.TakePermits(background(t, 400*time.Millisecond), ask)
			return between.cuts() > before
		})
		between.each(func(x *proxy) { x.cut.Store(cutNever) })
		require.Equal(t, 4, take(t, s, ask).Granted)
		require.Equal(t, 6, take(t, s, askOf(ask.Targets[0].Pacer, 10, 0, hourly)).Granted)
	}
}

func TestAsksThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	_, err := s.TakePermits(t.Context(), askOf("p", 1, 0))
	require.ErrorContains(t, err, "pacer p must have 1 to 5 limits (a rate counts as one), got 0")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.TakePermits(ctx, askOf("p", 1, 0, hourly))
	require.ErrorIs(t, err, context.Canceled)
}

// The pacers' scripts reject impossible arguments before they write.
func TestPaceScriptsCheckTheirArguments(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	keys, client := pacerKeys(t, s)
	ask := askOf("p", 1, time.Second, hourly, hourly)
	ask.Request = pacing.Request{1}
	var a script.Args
	a.Pace(s.scripts.Pace, keys, ask, nil)
	a.StampPace(capping.InstantOf(time.Now()), time.Minute)
	var args []string
	for _, value := range a.Values() {
		text, err := value.(encoding.BinaryMarshaler).MarshalBinary()
		require.NoError(t, err)
		args = append(args, string(text))
	}
	names, good := args[3:5], args[5]
	with := func(at int, text string) string { return good[:at] + text + good[at+len(text):] }
	for i, bad := range [][]string{
		{}, {"x"}, {good, "x"}, {good[:len(good)-1]}, {good + "x"}, {good[:20]},
		{with(9, "\x01\x86\xa1")}, {with(12, "\xff")}, {with(17, "\x00\x00\x00\x00\x00")},
		{with(22, "\x03")}, {with(23, "\x00")}, {with(23, "\x02")},
		{with(23, "\x09")},
		{with(24, "\x02")}, {with(31, "\x00")}, {with(31, "\x06")}, {with(32, "\x00\x00\x00")},
		{with(35, "\x00\x00\x00\x00\x00\x00")},
		{with(41, "\x00\x00\x00")}, {with(44, "\x00\x00\x00\x00\x00\x00")},
	} {
		rest := make([]any, len(bad))
		for j := range bad {
			rest[j] = bad[j]
		}
		err := client.EvalSha(t.Context(), s.scripts.Pace.SHA, names, rest...).Err()
		require.ErrorContains(t, err, "BADARG", "case %d", i)
		require.Error(t, client.EvalSha(t.Context(), s.scripts.Merge.SHA, names[:1], rest...).Err(), "case %d", i)
		require.Error(t, client.EvalSha(t.Context(), s.scripts.Forget.SHA, names, rest...).Err(), "case %d", i)
	}
	require.ErrorContains(t, client.EvalSha(t.Context(), s.scripts.Pace.SHA, names[:1], good).Err(), "BADARG")
	require.ErrorContains(t, client.EvalSha(t.Context(), s.scripts.Pace.SHA, slices.Concat(names, names), good).Err(),
		"BADARG")
	require.Zero(t, client.Exists(t.Context(), names...).Val())
	require.NoError(t, client.EvalSha(t.Context(), s.scripts.Pace.SHA, names, good).Err())
	require.EqualValues(t, 2, client.Exists(t.Context(), names...).Val())
}

// A later call sets a TTL that could not be set.
func TestTTLsOfPacersAreSetLater(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, server.Addrs[0])
	take(t, s, askOf("p", 1, 0, hourly))
	without(t, client, "-pexpire")
	weekly := pacing.Limit{Max: 10, Window: 7 * 24 * time.Hour}
	_, err := s.TakePermits(t.Context(), askOf("p", 1, 0, weekly))
	require.ErrorContains(t, err, "undecided (auth)")
	without(t, client)
	take(t, s, askOf("p", 1, 0, hourly))
	keys, _ := pacerKeys(t, s)
	require.Greater(t, client.PTTL(t.Context(), keys.Log("p", "")).Val(), 24*time.Hour)
	take(t, s, askOf("p", 1, 0, weekly))
	require.Greater(t, client.PTTL(t.Context(), keys.Log("p", "")).Val(), 7*24*time.Hour)
}
