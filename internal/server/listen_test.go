package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/server/gate"
	"capper/internal/testkit"
)

func TestListenNeedsKeysBeyondLoopback(t *testing.T) {
	t.Parallel()
	open := newService(t).server
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0", "10.0.0.1:8080"} {
		_, err := open.Listen(addr)
		require.ErrorContains(t, err, "must be a loopback address", addr)
	}
	for _, addr := range []string{"", "127.0.0.1", "127.0.0.1:0:0"} {
		_, err := open.Listen(addr)
		require.ErrorContains(t, err, "must be host:port", addr)
	}
	for _, addr := range []string{"127.0.0.1:0", "127.8.0.1:0", "localhost:0"} {
		l, err := open.Listen(addr)
		require.NoError(t, err, addr)
		require.NoError(t, l.Close())
	}
	l, err := newService(t, withKeys).server.Listen("0.0.0.0:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	_, err = open.Listen(net.JoinHostPort("127.0.0.1", portOf(t, l)))
	require.ErrorContains(t, err, "address already in use")
}

func portOf(t *testing.T, l net.Listener) string {
	t.Helper()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// start serves the service's public handler on a free port.
func (s *service) start(tlsConfig *tls.Config) (addr string) {
	s.t.Helper()
	l, err := s.server.Listen("127.0.0.1:0")
	require.NoError(s.t, err)
	s.serve(l, tlsConfig)
	return l.Addr().String()
}

// serve accepts the connections of the listener until the end of the test.
func (s *service) serve(l net.Listener, tlsConfig *tls.Config) {
	srv := s.server.HTTPServer(s.server.Public(), tlsConfig)
	ended := make(chan error, 1)
	go func() { ended <- gate.Serve(srv, l) }()
	s.t.Cleanup(func() {
		require.NoError(s.t, srv.Close())
		require.ErrorIs(s.t, <-ended, http.ErrServerClosed)
	})
}

// issue writes a certificate for the name and its key, and returns a pool that trusts the certificate.
func issue(t *testing.T, certFile, keyFile, name string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	require.NoError(t, os.WriteFile(certFile, certPEM, 0o600))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certPEM))
	return pool
}

func TestTLSReloadsChangedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	_, err := gate.TLSConfig(certFile, keyFile, nil)
	require.ErrorContains(t, err, "cert.pem")
	first := issue(t, certFile, keyFile, "one.test")
	config, err := gate.TLSConfig(certFile, keyFile, nil)
	require.NoError(t, err)
	s := newService(t)
	addr := s.start(config)

	get := func(pool *x509.CertPool, name string) (string, error) {
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name}, ForceAttemptHTTP2: true,
			DisableKeepAlives: true,
		}}
		response, err := client.Get("https://" + addr + "/healthz")
		if err != nil {
			return "", err
		}
		_, err = io.Copy(io.Discard, response.Body)
		return response.Proto, errors.Join(err, response.Body.Close())
	}
	proto, err := get(first, "one.test")
	require.NoError(t, err)
	require.Equal(t, "HTTP/2.0", proto)

	require.NoError(t, os.WriteFile(keyFile, []byte("half a key"), 0o600))
	_, err = get(first, "one.test")
	require.NoError(t, err, "while the files do not fit, the last good certificate is served")

	second := issue(t, certFile, keyFile, "two.test")
	require.Eventually(t, func() bool {
		_, err := get(second, "two.test")
		return err == nil
	}, testkit.Patience, 50*time.Millisecond)
	_, err = get(first, "one.test")
	require.Error(t, err)

	_, err = tls.Dial("tcp", addr, &tls.Config{RootCAs: second, ServerName: "two.test", MaxVersion: tls.VersionTLS11})
	require.Error(t, err, "TLS 1.1")
}

func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	s := newService(t)
	addr := s.start(nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/healthz", nil)
	require.NoError(t, err)
	request.Header.Set("X-Large", string(make([]byte, 0)))
	for i := range 40 {
		request.Header.Add("X-Large", string(rune('a'+i%26))+string(bytesOf('x', 1000)))
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
}

func bytesOf(b byte, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = b
	}
	return out
}

// TestTLSReloadsASwappedSecret checks that a certificate is replaced when both files of a mounted Secret change at
// once. The next handshakes use the new certificate, and no fault is logged.
func TestTLSReloadsASwappedSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	secret := func(name string) (map[string]string, *x509.CertPool) {
		pool := issue(t, certFile, keyFile, name)
		cert, err := os.ReadFile(certFile)
		require.NoError(t, err)
		key, err := os.ReadFile(keyFile)
		require.NoError(t, err)
		return map[string]string{"tls.crt": string(cert), "tls.key": string(key)}, pool
	}
	files, _ := secret("0.test")
	mount := testkit.NewMount(t, files)
	log := new(testkit.Log)
	config, err := gate.TLSConfig(mount.Path("tls.crt"), mount.Path("tls.key"),
		slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	addr := newService(t).start(config)
	for _, name := range []string{"1.test", "2.test"} {
		files, pool := secret(name)
		mount.Swap(files)
		testkit.Eventually(t, func() bool {
			conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, ServerName: name})
			return err == nil && conn.Close() == nil
		})
	}
	require.Empty(t, log.String())
}
