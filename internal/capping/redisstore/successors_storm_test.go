//go:build storms

package redisstore

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMasterPromotedWithBadSettingsIsLogged(t *testing.T) {
	t.Parallel()
	t.Run("by hand", func(t *testing.T) {
		t.Parallel()
		c := testcluster.Single(t, testcluster.Options{Replicas: 1})
		promotionIsLogged(t, c, Config{Addrs: c.Addrs}, "node "+c.Addrs[1])
	})
	t.Run("by a Sentinel", func(t *testing.T) { // the node keeps its name
		t.Parallel()
		c := testcluster.Single(t, testcluster.Options{Replicas: 1})
		promotionIsLogged(t, c, Config{Addrs: []string{sentinel(t, c.Addrs[0])}, SentinelMaster: "logs"},
			"node sentinel:logs")
	})
}

func promotionIsLogged(t *testing.T, c *testcluster.Cluster, config Config, who string) {
	t.Helper()
	var log journal
	config.ReplicaAcks, config.AttemptTimeout = FixedAcks(0), 400*time.Millisecond
	config.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := openTest(t, config)
	replica := admin(t, c.Addrs[1])
	require.NoError(t, replica.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	require.NoError(t, replica.ConfigSet(t.Context(), "hash-max-listpack-value", "64").Err())
	require.NoError(t, c.Kill(c.Addrs[0]))
	if config.SentinelMaster == "" {
		require.NoError(t, replica.ReplicaOf(t.Context(), "no", "one").Err())
	}
	for _, want := range []string{
		who + ": maxmemory-policy is allkeys-lru", who + ": hash-max-listpack-value is 64",
	} {
		testkit.Eventually(t, func() bool { return strings.Contains(log.text(), want) }, want)
	}
	refreshes(t, s)
	require.NoError(t, s.Close())
	// what is wrong, and who is barred
	for _, message := range []string{`msg="Redis master may lose records"`, `msg="Redis store"`} {
		said := 0
		for line := range strings.Lines(log.text()) {
			if strings.Contains(line, message) && strings.Contains(line, "allkeys-lru") {
				said++
			}
		}
		require.Equal(t, 1, said, "%s is logged once, not at every refresh: %s", message, log.text())
	}
}

// journal is a log buffer that tests may read during writes.
type journal struct {
	mu      sync.Mutex
	written strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written.Write(p)
}

func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written.String()
}

// A master may answer a refresh before it dies, and its replica may answer the same refresh after its promotion. The
// store must not take them for two simultaneous masters.
func TestPromotionsWithinARefreshAreFollowed(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	master, replica := c.Addrs[0], c.Addrs[1]
	held := holding{asked: make(chan struct{}), answered: make(chan struct{}), release: make(chan struct{})}
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), AttemptTimeout: 5 * time.Second,
		dial: held.dial(master, replica)})
	users, daily := spread(40), rolling(1, time.Hour)
	require.Equal(t, 40, count(filter(t, s, batchOf("a", users, daily)), capping.Allowed))
	replicated(t, master)
	refreshes(t, s) // the replica is known as one

	release := sync.OnceFunc(func() { close(held.release) })
	defer release()
	held.on.Store(true)
	s.top.RefreshSoon()
	<-held.asked
	<-held.answered
	held.on.Store(false)
	require.NoError(t, c.Kill(master))
	promote(t, replica)
	release()
	follows(t, s, replica)
	require.Equal(t, 40, count(filter(t, s, batchOf("b", users, daily)), capping.Denied))
}
