package redisstore

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// sentinel starts a Redis Sentinel that watches a master, and returns its address.
func sentinel(t *testing.T, master string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(master)
	require.NoError(t, err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := free.Addr().String()
	require.NoError(t, free.Close())
	_, own, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	require.NoError(t, os.WriteFile(file, []byte("port "+own+"\nbind 127.0.0.1\n"+
		"sentinel monitor logs "+host+" "+port+" 1\nsentinel down-after-milliseconds logs 4000\n"+
		"sentinel failover-timeout logs 3000\n"), 0o600))
	server := exec.Command(testcluster.Server(), file, "--sentinel")
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	client := admin(t, addr)
	require.Eventually(t, func() bool {
		text, err := client.Do(t.Context(), "sentinel", "replicas", "logs").Slice()
		return err == nil && len(text) > 0
	}, testkit.Patience, 50*time.Millisecond, "the sentinel has to find the replicas of port "+strconv.Quote(port))
	return addr
}

// With several addresses of standalone servers, the store uses the master among them.
func TestStoreFindsTheMasterAmongServers(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	s := openTest(t, Config{Addrs: []string{c.Addrs[1], c.Addrs[0]}})
	require.Equal(t, 1, count(filter(t, s, batchOf("a", []capping.UserID{1})), capping.Allowed))
	require.Equal(t, c.Addrs[0], s.top.Route(0).Addr())
}
