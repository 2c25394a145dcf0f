package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"capper/internal/server"
	"capper/internal/server/gate"
)

// startTLS serves with a new certificate.
func (s *service) startTLS() (addr string, config *tls.Config, pool *x509.CertPool) {
	s.t.Helper()
	dir := s.t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool = issue(s.t.(*testing.T), certFile, keyFile, "localhost")
	config, err := gate.TLSConfig(certFile, keyFile, nil)
	require.NoError(s.t, err)
	return s.start(config), config, pool
}

// TestLargeHeadersDoNotEndAnHTTP2Connection checks that a call with too large a header is refused, while other calls
// on its HTTP/2 connection continue.
func TestLargeHeadersDoNotEndAnHTTP2Connection(t *testing.T) {
	t.Parallel()
	addr, _, pool := newService(t).startTLS()
	c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, ServerName: "localhost", NextProtos: []string{"h2"}})
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = io.WriteString(c, http2.ClientPreface)
	require.NoError(t, err)
	framer := http2.NewFramer(c, c)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	require.NoError(t, framer.WriteSettings())
	var block strings.Builder
	encoder := hpack.NewEncoder(&block)
	ask := func(stream uint32, more int) string {
		block.Reset()
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"},
			{":path", "/healthz"}} {
			require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
		}
		for i := range more {
			require.NoError(t, encoder.WriteField(hpack.HeaderField{Name: fmt.Sprintf("x-more-%d", i),
				Value: strings.Repeat("~", 1000), Sensitive: true}))
		}
		writeHeaders(t, framer, stream, block.String())
		return h2Status(t, framer, stream)
	}
	require.Equal(t, "200", ask(1, 0))
	for i, kilobytes := range []int{17, 20, 33, 40, 55} {
		require.Equal(t, "431", ask(uint32(3+4*i), kilobytes), "%d kB", kilobytes)
		require.Equal(t, "200", ask(uint32(5+4*i), 1))
	}
}

// writeHeaders writes a header block in frames of a size that all peers accept.
func writeHeaders(t *testing.T, framer *http2.Framer, stream uint32, block string) {
	t.Helper()
	const frame = 16 << 10
	first := block[:min(len(block), frame)]
	rest := block[len(first):]
	require.NoError(t, framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(first),
		EndStream: true, EndHeaders: rest == ""}))
	for rest != "" {
		part := rest[:min(len(rest), frame)]
		rest = rest[len(part):]
		require.NoError(t, framer.WriteContinuation(stream, rest == "", []byte(part)))
	}
}

func h2Status(t *testing.T, framer *http2.Framer, stream uint32) string {
	t.Helper()
	for {
		frame, err := framer.ReadFrame()
		require.NoError(t, err)
		switch f := frame.(type) {
		case *http2.GoAwayFrame:
			t.Fatalf("the connection ends: %s %s", f.ErrCode, f.DebugData())
		case *http2.MetaHeadersFrame:
			if f.StreamID == stream {
				return f.PseudoValue("status")
			}
		}
	}
}

func TestTLS12HasNoCBC(t *testing.T) {
	t.Parallel()
	addr, _, pool := newService(t).startTLS()
	dial := func(suites ...uint16) error {
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: pool, ServerName: "localhost",
			MaxVersion: tls.VersionTLS12, CipherSuites: suites})
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	require.NoError(t, dial(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256))
	require.NoError(t, dial(tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256))
	require.Error(t, dial(tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA))
}

func TestCertificateExpiryIsAMetric(t *testing.T) {
	t.Parallel()
	_, config, _ := newService(t).startTLS()
	registry := prometheus.NewRegistry()
	registry.MustRegister(gate.CertificateExpiry(config))
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Equal(t, "capper_tls_certificate_expiry_timestamp_seconds", families[0].GetName())
	require.InDelta(t, time.Now().Add(time.Hour).Unix(), families[0].Metric[0].Gauge.GetValue(), 60)
}

func TestALoopbackServiceRefusesForeignHosts(t *testing.T) {
	t.Parallel()
	s := newService(t, func(cfg *server.Config) { cfg.HostNames = []string{"capper.internal"} })
	addr := s.start(nil)
	ask := func(host string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/status", nil)
		require.NoError(t, err)
		r.Host = host
		response, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	for _, host := range []string{"localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1", "127.0.0.1:1",
		"127.8.9.10:80", "[::1]", "[::1]:8080", "capper.internal", "Capper.Internal:80"} {
		require.Equal(t, http.StatusOK, ask(host), host)
	}
	for _, host := range []string{"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.nip.io",
		"10.0.0.1", "0.0.0.0", "[::]", "capper.internal.evil.example"} {
		require.Equal(t, http.StatusMisdirectedRequest, ask(host), host)
	}
}

// TestForeignHostsAreNotLocal checks that metrics and profiles need a key for requests that a foreign page caused,
// although they need none through loopback otherwise.
func TestForeignHostsAreNotLocal(t *testing.T) {
	t.Parallel()
	s := newService(t, withKeys, func(cfg *server.Config) { cfg.AdminSeparate = true })
	admin := httptest.NewServer(s.server.Admin())
	t.Cleanup(admin.Close)
	for host, want := range map[string]int{"localhost": 200, "": 200, "evil.example": 401} {
		for _, path := range []string{"/metrics", "/debug/pprof/cmdline"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, admin.URL+path, nil)
			require.NoError(t, err)
			r.Host = host
			response, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, want, response.StatusCode, host+path)
		}
	}
	response, err := http.Get(admin.URL + "/metrics")
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), `capper_http_requests_total{route="/debug/pprof/cmdline",status="200"} 2`)
	require.NotContains(t, string(text), `capper_http_request_seconds_count{route="/debug`,
		"a profile takes as long as it was asked to")
}

// TestConnectionsAreClosedPolitely checks that a stopping service closes each connection with the answer to its next
// call.
func TestConnectionsAreClosedPolitely(t *testing.T) {
	t.Parallel()
	s := newService(t)
	addr := s.start(nil)
	c := guest(t, "127.0.0.1", addr)
	reader := bufio.NewReader(c)
	for _, stopping := range []bool{false, true} {
		if stopping {
			s.server.BeginStop()
		}
		_, err := io.WriteString(c, "GET /v1/limits HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		response, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		require.Equal(t, stopping, response.Close)
	}
	_, err := reader.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, http.StatusServiceUnavailable, s.get("/readyz").status)
}

// TestHTTP2ConnectionsAreClosedPolitely checks that an HTTP/2 client is asked to open another connection, and calls
// continue.
func TestHTTP2ConnectionsAreClosedPolitely(t *testing.T) {
	t.Parallel()
	s := newService(t)
	addr, _, pool := s.startTLS()
	connections := 0
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}, ForceAttemptHTTP2: true,
	}}
	ctx := httptraceConnections(t.Context(), &connections)
	for call := 0; call < 6 || connections == 1 && call < 1000; call++ { // until the client has noticed the shutdown
		if call == 3 {
			s.server.BeginStop()
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+addr+"/v1/limits", nil)
		require.NoError(t, err)
		r.Host = "localhost"
		response, err := client.Do(r)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, 2, response.ProtoMajor)
	}
	require.Greater(t, connections, 1)
}

func httptraceConnections(ctx context.Context, n *int) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if !c.Reused {
			*n++
		}
	}})
}
