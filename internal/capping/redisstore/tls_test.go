package redisstore

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// secure gives the server a TLS port that accepts any client, beside its plain port.
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
	require.NoError(t, client.Do(t.Context(), "config", "set", "tls-cert-file", a.File("server.crt"), "tls-key-file",
		a.File("server.key")).Err())
	require.NoError(t, client.ConfigSet(t.Context(), "tls-port", strconv.Itoa(free.Addr().(*net.TCPAddr).Port)).Err())
	return addr
}

// The store reports a server's new certificate before open connections break: a metric by node has its expiry, and a
// warning says that new connections would reject it.
func TestCertificatesAreWatchedWhileConnectionsStand(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	server := testcluster.Single(t, testcluster.Options{})
	addr := secure(t, a, server)
	registry := prometheus.NewRegistry()
	s := openTest(t, unhurried(Config{
		Addrs: []string{addr}, TLS: a.Client(t), ReplicaAcks: FixedAcks(0), Registerer: registry,
		certificatesEvery: 20 * time.Millisecond,
	}))
	client, users, batch := admin(t, server.Addrs[0]), spread(20), 0
	decides := func() { // over the connections that it has
		batch++
		require.Equal(t, 20, count(filter(t, s, batchOf(strconv.Itoa(batch), users, rolling(100, time.Hour))),
			capping.Allowed))
	}
	decides()
	present := func(end time.Time, names ...string) {
		a.LeafUntil(t, "server", end, names...)
		require.NoError(t, client.Do(t.Context(), "config", "set", "tls-cert-file", a.File("server.crt"),
			"tls-key-file", a.File("server.key")).Err())
	}
	for _, test := range []struct {
		end    time.Duration
		names  []string
		warned string
	}{
		{end: 1000 * time.Hour},
		{end: 100 * time.Hour, warned: "node " + addr + ": its certificate expires at "},
		{end: -time.Hour, warned: "node " + addr + ": new connections reject its certificate: tls: failed to verify " +
			"certificate: x509: certificate has expired"},
		{end: 1000 * time.Hour, names: []string{"10.1.2.3"},
			warned: "is for 10.1.2.3 and not for 127.0.0.1: set tls.server_name"},
		{end: 2000 * time.Hour},
	} {
		end := time.Now().Add(test.end)
		present(end, test.names...)
		testkit.Eventually(t, func() bool { return certificateEnd(t, registry, addr) == end.Unix() }, test)
		told := strings.Join(s.top.Warnings(), "\n")
		if test.warned == "" {
			require.NotContains(t, told, "certificate")
		} else {
			require.Contains(t, told, test.warned)
		}
		decides()
	}
}

// certificateEnd returns the metric's value for the node; 0 means no value.
func certificateEnd(t *testing.T, registry *prometheus.Registry, addr string) int64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "capper_store_certificate_expiry_timestamp_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "node" && label.GetValue() == addr {
					return int64(m.GetGauge().GetValue())
				}
			}
		}
	}
	return 0
}
