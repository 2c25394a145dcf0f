package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/objects/s3test"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// onCluster is a configuration for S3 segments and the shared Redis Cluster.
func onCluster(t *testing.T, source string) (file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "capper.yaml")
	write(t, file, fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s}
segments: {source: %q, cache_dir: %s/cache, refresh: 100ms}
store: {kind: redis, redis: {addrs: [%s], clock_skew: 250ms}}
channels: {push: 1}
limits: {default: {daily: 3}, segments: {new: {daily: 0}}}
`, source, dir, strings.Join(testcluster.Shared(t), ", ")))
	return file
}

// Two instances over one cluster share the limits, whichever is asked.
func TestTwoInstancesShareLimits(t *testing.T) {
	t.Parallel()
	source := "s3://" + s3test.Bucket(t) + "/prod"
	publish(t, source, "new=1-10")
	file := onCluster(t, source)
	instances := []*process{serve(t, file), serve(t, file)}
	base := rand.Uint32N(1<<31) + 1<<30
	users := make([]uint32, 2000)
	for i := range users {
		users[i] = base + uint32(i)
	}

	var mu sync.Mutex
	allowed := map[uint32]int{}
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for left := users; len(left) > 0; { // who could not be decided in time is asked for again
				got, err := instances[caller%2].filter(fmt.Sprintf("promo-%d-%d", base, caller), left...)
				mu.Lock()
				if err != nil || len(got.Allowed)+len(got.Denied)+len(got.Unavailable) != len(left) {
					t.Errorf("caller %d: %v, %d unavailable", caller, err, len(got.Unavailable))
					got.Unavailable = nil
				}
				for _, user := range got.Allowed {
					allowed[user]++
				}
				mu.Unlock()
				left = got.Unavailable
			}
		})
	}
	callers.Wait()
	for _, user := range users {
		require.Equal(t, 3, allowed[user], "user %d", user)
	}
	got, err := instances[0].filter("x", 5)
	require.NoError(t, err)
	require.Empty(t, got.Allowed, "segment new has limit 0")
	require.Zero(t, got.Denied[0].RetryAt, "no waiting helps: retry_at is null")
}

// A verified copy serves a start while S3 is away, and says so.
func TestStartFromTheCacheWhileS3IsDown(t *testing.T) {
	t.Parallel()
	source := "s3://" + s3test.Bucket(t) + "/prod"
	publish(t, source, "new=1-10")
	file := onCluster(t, source)
	p := serve(t, file)
	generation := p.get("/v1/status")["generation"]
	p.signal(syscall.SIGTERM)

	p = serve(t, file, "AWS_ENDPOINT_URL_S3=http://127.0.0.1:1", "AWS_MAX_ATTEMPTS=1")
	status := p.get("/v1/status")
	require.Equal(t, generation, status["generation"])
	segments := status["segments"].(map[string]any)
	require.Equal(t, "cache", segments["origin"])
	require.Contains(t, segments["error"], "connection refused")
	got, err := p.filter("x", 5)
	require.NoError(t, err)
	require.Len(t, got.Denied, 1)
}

func TestAPublishIsInUseWithinARefresh(t *testing.T) {
	t.Parallel()
	source := "s3://" + s3test.Bucket(t) + "/prod"
	publish(t, source, "new=1-10")
	p := serve(t, onCluster(t, source))
	first := p.get("/v1/status")["generation"]
	publish(t, source, "new=11-20")
	testkit.Eventually(t, func() bool { return p.get("/v1/status")["generation"] != first })
	got, err := p.filter("x", 15)
	require.NoError(t, err)
	require.Len(t, got.Denied, 1)
}
