package redisstore

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// secure gives the server a TLS port beside its plain one, for anybody.
func secure(t *testing.T, a *testkit.Authority, server *testcluster.Cluster) (addr string) {
	t.Helper()
	a.Leaf(t, "server")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = free.Addr().String()
	require.NoError(t, free.Close())
	client := admin(t, server.Addrs[0])
	for _, setting := range [][2]string{
		{"tls-ca-cert-file", a.File("ca.crt")}, {"tls-auth-clients", "no"},
	} {
		require.NoError(t, client.ConfigSet(t.Context(), setting[0], setting[1]).Err())
	}
	require.NoError(t, client.Do(t.Context(), "config", "set", "tls-cert-file", a.File("server.crt"), "tls-key-file", a.File("server.key")).Err())
	require.NoError(t, client.ConfigSet(t.Context(), "tls-port", strconv.Itoa(free.Addr().(*net.TCPAddr).Port)).Err())
	return addr
}
