package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// A server that evicts has its users wait for an operator: status, doctor and metrics say so, and the command
// has them decided again.
func TestALossIsAccepted(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Single(t, testcluster.Options{})
	dir := t.TempDir()
	publish(t, dir+"/segments", "new=1-10")
	file := filepath.Join(dir, "capper.yaml")
	write(t, file, fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s}
segments: {source: %q, refresh: 100ms}
store: {kind: redis, redis: {addrs: [%s], replica_acks: 0}}
channels: {push: 1}
limits: {default: {daily: 1}}
`, dir+"/segments", cluster.Addrs[0]))
	p := serve(t, file)
	ids := make([]uint32, 20_000)
	for i := range ids {
		ids[i] = uint32(i + 100)
	}
	got, err := p.filter("first", ids...)
	require.NoError(t, err)
	require.Len(t, got.Allowed, len(ids))
	require.Contains(t, capperOutput(t, 0, "store", "accept", "--url", p.url, "--reason", "nothing"),
		"there was no loss to accept")

	node := redis.NewClient(&redis.Options{Addr: cluster.Addrs[0], Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { require.NoError(t, node.Close()) })
	set := func(name, value string) { require.NoError(t, node.ConfigSet(t.Context(), name, value).Err()) }
	info, err := node.Info(t.Context()).Result()
	require.NoError(t, err)
	set("maxmemory-policy", "allkeys-random")
	set("maxmemory", fmt.Sprint(topology.ParseInfo(info).Number("used_memory")-32<<10))
	require.NoError(t, node.Set(t.Context(), "room", "", time.Minute).Err())
	set("maxmemory", "0")
	testkit.Eventually(t, func() bool {
		got, err := p.filter("second", ids...)
		require.NoError(t, err)
		require.Empty(t, got.Allowed)
		return len(got.Unavailable) == len(ids)
	})

	refused := capperOutput(t, 1, "store", "accept", "--url", p.url, "--reason", "hurry")
	require.Contains(t, refused, "'maxmemory-policy' is still 'allkeys-random': set it to 'noeviction'")
	set("maxmemory-policy", "noeviction")
	require.Contains(t, capperOutput(t, 1, "status", "--url", p.url),
		"until an operator accepts the loss (capper store accept)")
	doctor := capperOutput(t, 8, "doctor", "--config", file)
	require.Contains(t, doctor, "capper store accept")
	require.Contains(t, scraped(t, p.url), `capper_store_promise_broken{node="`+cluster.Addrs[0]+`"`)

	out := capperOutput(t, 0, "store", "accept", "--url", p.url, "--reason", "compared with the audit")
	t.Log(refused, "\n", out)
	require.Contains(t, out, cluster.Addrs[0])
	testkit.Eventually(t, func() bool {
		got, err := p.filter("third", ids...)
		return err == nil && len(got.Unavailable) == 0
	})
	status := capperOutput(t, 0, "status", "--url", p.url)
	require.Contains(t, status, "(compared with the audit): users of")
	require.NotContains(t, scraped(t, p.url), "capper_store_promise_broken{")
	require.Contains(t, strings.ReplaceAll(p.log.String(), `"`, ""), "accept")
	t.Log(status)
}

// scraped is what the service tells Prometheus.
func scraped(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url + "/metrics")
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(text)
}
