package main

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// onServer is a configuration over a Redis of the test's own.
func onServer(t *testing.T, addr, channels, limits string) (file string) {
	t.Helper()
	dir := t.TempDir()
	publish(t, filepath.Join(dir, "segments"), "new=1-10")
	file = filepath.Join(dir, "capper.yaml")
	write(t, file, redisConfig(dir, addr, channels, limits, true))
	return file
}

func redisConfig(dir, addr, channels, limits string, create bool) string {
	return fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s}
segments: {source: %[1]s/segments, cache_dir: %[1]s/cache, refresh: 100ms}
store: {kind: redis, redis: {addrs: [%[2]s], replica_acks: 0, create: %[5]t}}
channels: %[3]s
limits: %[4]s
`, dir, addr, channels, limits, create)
}

// An instance whose channels contradict what is stored is refused, at a start
// and at a reload; one that differs otherwise is shown.
func TestChannelsOfAFleetMustAgree(t *testing.T) {
	t.Parallel()
	redis := testcluster.Single(t, testcluster.Options{}).Addrs[0]
	const limits = "{default: {daily: 1}}"
	file := onServer(t, redis, "{push: 1, email: 2}", limits)
	p := serve(t, file)
	other := launch(t, onServer(t, redis, "{push: 2}", limits))
	<-other.exited
	require.Contains(t, other.log.String(),
		"channels.push: has the numeric id 2 in the configuration, "+
			"but in stored sends channel push has the numeric id 1")

	write(t, file, redisConfig(filepath.Dir(file), redis, "{push: 1, mail: 2}", limits, true))
	status := func() string { return fmt.Sprint(p.get("/v1/status")) }
	testkit.Eventually(t, func() bool {
		return p.get("/v1/status")["config"].(map[string]any)["error"] != nil
	})
	require.Contains(t, status(),
		"channels.mail: has the numeric id 2 in the configuration, "+
			"but in stored sends channel email has the numeric id 2")
	got, err := p.filter("m", 7)
	require.NoError(t, err)
	require.Len(t, got.Allowed, 1, "the configuration before stays in force")

	third := serve(t, onServer(t, redis, "{push: 1, sms: 3}", limits))
	testkit.Eventually(t, func() bool {
		fleet := third.get("/v1/status")["store"].(map[string]any)["fleet"].(map[string]any)
		differing, _ := fleet["differing"].(map[string]any)
		return fleet["instances"] == 2.0 && differing["config_version"] == 1.0 && differing["channels"] == 1.0
	}, "%v", third.get("/v1/status"))
}

// create: false refuses an empty Redis, and one that was emptied.
func TestAnEmptyRedisIsRefusedWhereItMustNotBe(t *testing.T) {
	t.Parallel()
	redis := testcluster.Single(t, testcluster.Options{})
	file := onServer(t, redis.Addrs[0], "{push: 1}", "{default: {daily: 1}}")
	create := func(create bool) {
		write(t, file, redisConfig(filepath.Dir(file), redis.Addrs[0], "{push: 1}", "{default: {daily: 1}}", create))
	}
	refused := func() {
		create(false)
		p := launch(t, file)
		<-p.exited
		require.Contains(t, p.log.String(), "no store exists in Redis for namespace fc: the namespace is new, or its "+
			"records are lost: set store.redis.create: true to create an empty store")
	}
	refused()
	create(true)
	p := serve(t, file)
	require.Contains(t, p.log.String(), "a new store was created without records")
	p.signal(syscall.SIGTERM)
	create(false)
	serve(t, file).signal(syscall.SIGTERM)
	_, port, err := net.SplitHostPort(redis.Addrs[0])
	require.NoError(t, err)
	require.NoError(t, exec.Command("redis-cli", "-p", port, "flushall").Run())
	refused()
}
