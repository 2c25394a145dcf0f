//go:build storms

package rentedtest_test

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// TestAClusterOfTLSAlone checks that the store works with a cluster that requires TLS between its
// nodes and client certificates, for the whole lifetime of its certificates.
func TestAClusterOfTLSAlone(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	a.Leaf(t, "server")
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, TLS: a.Dir})
	secure := a.Client(t)
	s := open(t, redisstore.Config{Addrs: c.Addrs, TLS: secure})
	decides(t, s)

	text, hint := refused(t, redisstore.Config{Addrs: c.Addrs[:1], Timeout: 5 * time.Second})
	require.Contains(t, hint, "speaks TLS: set tls.enabled: true", text)

	stranger := secure.Clone()
	stranger.Certificates = nil
	// A connection reset may hide the server's message, so the hint must not depend on it.
	_, hint = refused(t, redisstore.Config{Addrs: c.Addrs[:1], TLS: stranger})
	require.Contains(t, hint, "set tls.cert_file and key_file")

	other := testkit.NewAuthority(t)
	unknown := secure.Clone()
	unknown.RootCAs = other.Pool(t)
	text, hint = refused(t, redisstore.Config{Addrs: c.Addrs[:1], TLS: unknown})
	require.Contains(t, text, "certificate signed by unknown authority")
	require.Contains(t, hint, "ca_file")

	foreign := secure.Clone()
	foreign.Certificates = other.Client(t).Certificates
	_, hint = refused(t, redisstore.Config{Addrs: c.Addrs[:1], TLS: foreign})
	require.Contains(t, hint, "rejects the one in cert_file")
}

// TestCertificatesOfServersAreChecked checks that an error names the problem with a server's
// certificate and a solution.
func TestCertificatesOfServersAreChecked(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	a.Leaf(t, "server")
	c := testcluster.Single(t, testcluster.Options{TLS: a.Dir})
	secure := a.Client(t)
	config := redisstore.Config{Addrs: c.Addrs, TLS: secure, ReplicaAcks: redisstore.FixedAcks(0)}
	present := func() {
		client := secureAdmin(t, c.Addrs[0], secure)
		require.NoError(t, client.Do(t.Context(), "config", "set", "tls-cert-file", a.File("server.crt"),
			"tls-key-file", a.File("server.key")).Err())
	}
	s := open(t, config)
	decides(t, s)

	a.Leaf(t, "server", "redis.internal", "10.1.2.3")
	present()
	text, hint := refused(t, config)
	require.Contains(t, text, "127.0.0.1")
	require.Contains(t, hint, "is for 10.1.2.3, redis.internal and not for 127.0.0.1: set tls.server_name")
	named := secure.Clone()
	named.ServerName = "redis.internal"
	config.TLS = named
	stillDecides(t, open(t, config))

	a.LeafUntil(t, "server", time.Now().Add(-time.Minute), "redis.internal")
	client := secureAdmin(t, c.Addrs[0], named)
	require.NoError(t, client.Do(t.Context(), "config", "set", "tls-cert-file", a.File("server.crt"), "tls-key-file",
		a.File("server.key")).Err())
	text, hint = refused(t, config)
	require.Contains(t, text, "expired")
	require.Contains(t, hint, "has expired: renew it")
}

// TestCertificatesAreRotated checks that the store survives new keys of the server, the client and
// the authority. Open connections stay, and new connections use the new files.
func TestCertificatesAreRotated(t *testing.T) {
	t.Parallel()
	old, next := testkit.NewAuthority(t), testkit.NewAuthority(t)
	old.Leaf(t, "server")
	c := testcluster.Single(t, testcluster.Options{TLS: old.Dir})
	secure := old.Client(t)
	secure.RootCAs, secure.Certificates = nil, nil
	file, dir := old.File("ca.crt"), old.Dir // the files that the configuration names
	secure.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(dir+"/client.crt", dir+"/client.key")
		return &pair, err
	}
	s := open(t, redisstore.Config{
		Addrs: c.Addrs, TLS: secure, ReplicaAcks: redisstore.FixedAcks(0), AttemptTimeout: 400 * time.Millisecond,
		Authorities: func() (*x509.CertPool, error) {
			text, err := os.ReadFile(file)
			pool := x509.NewCertPool()
			pool.AppendCertsFromPEM(text)
			return pool, err
		},
	})
	decides(t, s)
	client := secureAdmin(t, c.Addrs[0], old.Client(t))
	next.Leaf(t, "server")
	next.Client(t)
	require.NoError(t, client.Do(t.Context(), "config", "set", "tls-ca-cert-file", next.File("ca.crt"),
		"tls-cert-file", next.File("server.crt"), "tls-key-file", next.File("server.key")).Err())
	for _, name := range []string{"ca.crt", "client.crt", "client.key"} {
		text, err := os.ReadFile(next.File(name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(old.File(name), text, 0o600))
	}
	stillDecides(t, s)
	require.NoError(t, client.Do(t.Context(), "client", "kill", "user", user).Err())
	stillDecides(t, s)
}

func secureAdmin(t *testing.T, addr string, secure *tls.Config) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		TLSConfig: secure, DialTimeout: testkit.Patience, ReadTimeout: testkit.Patience})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
