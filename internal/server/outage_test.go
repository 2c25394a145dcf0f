package server_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping/redisstore"
	"capper/internal/server"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// TestADeadNodeCostsItsOwnUsers checks that a dead node affects only its own users while it is dead. Other users keep
// their answers, and retries settle the rest.
func TestADeadNodeCostsItsOwnUsers(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.Options{NodeTimeout: time.Minute})
	clock := testkit.NewClockAt(startOfTest)
	store, err := redisstore.Open(t.Context(), redisstore.Config{
		Addrs: cluster.Addrs, Clock: clock.Now, ReplicaAcks: redisstore.FixedAcks(0),
		AttemptTimeout: 200 * time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s := newServiceOver(t, store, clock, func(cfg *server.Config) { cfg.Bounds.CallTimeout = 3 * time.Second })

	users := make([]uint32, 3000) // of all nodes
	for i := range users {
		users[i] = 1000 + uint32(i)*997
	}
	audience := fields{"message_id": "m", "user_ids": users}
	require.NoError(t, cluster.Pause(cluster.Addrs[0]))
	var answer *filtered
	testkit.Eventually(t, func() bool { // a busy machine may delay the other users too
		answer = s.filter(audience)
		require.NotEmpty(t, answer.Unavailable)
		require.Empty(t, answer.Denied)
		return len(answer.Allowed) > 0
	})
	require.NoError(t, cluster.Resume(cluster.Addrs[0]))
	requirePartition(t, users, answer)
	require.Equal(t, map[string]segmentCounts{"default": {3000, len(answer.Allowed)}}, answer.Summary.Segments)

	var settled *filtered
	require.Eventually(t, func() bool {
		settled = s.filter(fields{"message_id": "m", "user_ids": answer.Unavailable})
		return len(settled.Unavailable) == 0
	}, testkit.Patience, 100*time.Millisecond)
	require.Equal(t, answer.Unavailable, settled.Allowed)
	testkit.Eventually(t, func() bool { again := s.filter(audience); return slices.Equal(users, again.Replayed) },
		"every send is recorded once")
	require.Empty(t, s.filter(fields{"message_id": "other", "user_ids": users}).Allowed)
}

// TestADeadStoreIsNotReady checks that a service without any store node decides nobody and reports "not ready".
func TestADeadStoreIsNotReady(t *testing.T) {
	t.Parallel()
	single := testcluster.Single(t, testcluster.Options{})
	clock := testkit.NewClockAt(startOfTest)
	store, err := redisstore.Open(t.Context(), redisstore.Config{
		Addrs: single.Addrs, Clock: clock.Now, ReplicaAcks: redisstore.FixedAcks(0),
		AttemptTimeout: 100 * time.Millisecond,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s := newServiceOver(t, store, clock, withPacers(t, store),
		func(cfg *server.Config) { cfg.Bounds.CallTimeout = 500 * time.Millisecond })
	testkit.Eventually(t, func() bool { return s.get("/readyz").status == http.StatusOK })
	testkit.Eventually(t, func() bool { // within its time limit, which a busy machine may miss
		r := s.post("/v1/permits", `{"pacers":["twilio"],"permits":1}`)
		return r.status == http.StatusOK && decodeAs[api.Permits](t, r.body).Granted == 1
	})
	require.NoError(t, single.Kill(single.Addrs[0]))

	require.Equal(t, span(0, 10), s.filter(fields{"message_id": "m", "user_ids": span(0, 10)}).Unavailable)
	for _, call := range []reply{
		s.get("/v1/users/7"), s.call(http.MethodDelete, "/v1/users/7", ""),
		s.post("/v1/permits", `{"pacers":["twilio"],"permits":1}`),
		s.get("/v1/pacers"), s.get("/v1/pacers/twilio"), s.call(http.MethodDelete, "/v1/pacers/twilio", ""),
	} {
		require.Equal(t, http.StatusServiceUnavailable, call.status)
		require.Equal(t, "unavailable", call.failure(t).Error.Code)
		require.Equal(t, "the store could not answer in time: try again", call.failure(t).Error.Message)
		require.Equal(t, "1", call.header.Get("Retry-After"))
		require.NotContains(t, string(call.body), "127.0.0.1", "the store's errors are for operators")
	}
	released := decodeAs[released](t, s.post("/v1/release", `{"message_id": "m", "user_ids": [7]}`).body)
	require.Equal(t, []uint32{7}, released.Unavailable)
	require.Eventually(t, func() bool { return s.get("/readyz").status == http.StatusServiceUnavailable },
		2*time.Minute, 50*time.Millisecond)
	require.Contains(t, string(s.get("/v1/status").body), `"state":"down"`)
	require.Contains(t, string(s.get("/v1/status").body), `"ready":false`)
	require.Equal(t, http.StatusOK, s.get("/healthz").status)
}
