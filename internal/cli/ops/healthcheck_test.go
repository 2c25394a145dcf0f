package ops

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/terminal"
)

// check asks services at addresses, as the configuration names them.
func check(t *testing.T, c HealthcheckCommand, tls string, urls ...string) (string, error) {
	t.Helper()
	c.Config = filepath.Join(t.TempDir(), "capper.yaml")
	text := "server: {" + tls
	for i, url := range urls {
		_, address, _ := strings.Cut(url, "://")
		text += []string{"listen", "admin_listen"}[i] + ": '" + address + "', "
	}
	require.NoError(t, os.WriteFile(c.Config, []byte(text+"}\n"), 0o600))
	out := new(strings.Builder)
	err := c.Run(t.Context(), &terminal.Streams{Program: "capper", Out: terminal.NewWriter(out)})
	return out.String(), err
}

func TestHealthcheck(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	answers := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				w.WriteHeader(status)
			} else {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_, _ = w.Write([]byte(`{"error": "why"}` + "\n"))
		}
	}
	well, ill := httptest.NewServer(answers(200)), httptest.NewServer(answers(503))
	secure := httptest.NewTLSServer(answers(200))
	hanging := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hanging }))
	for _, s := range []*httptest.Server{well, ill, secure, slow} {
		t.Cleanup(s.Close)
	}
	t.Cleanup(func() { close(hanging) })
	usual := HealthcheckCommand{Timeout: time.Minute}

	out, err := check(t, usual, "", well.URL)
	require.NoError(t, err)
	require.Equal(t, well.URL+"/healthz: ok\n", out)
	_, err = check(t, usual, "tls: {cert_file: a, key_file: b}, ", secure.URL)
	require.NoError(t, err, "whatever name the certificate has")

	_, err = check(t, usual, "", well.URL, ill.URL)
	require.EqualError(t, err, ill.URL+`/healthz: 503 Service Unavailable: {"error": "why"}`, "each listener is asked")
	_, err = check(t, HealthcheckCommand{Ready: true, Timeout: time.Minute}, "", well.URL)
	require.ErrorContains(t, err, "/readyz: 503")
	_, err = check(t, usual, "tls: {cert_file: a, key_file: b}, ", well.URL)
	require.ErrorContains(t, err, "HTTP response to HTTPS client")
	_, err = check(t, HealthcheckCommand{Timeout: 20 * time.Millisecond}, "", slow.URL)
	require.ErrorContains(t, err, "deadline exceeded")
	gone := well.URL
	well.Close()
	_, err = check(t, usual, "", gone)
	require.ErrorContains(t, err, "connection refused")
	require.Equal(t, terminal.Failure, terminal.StatusOf(err))
	err = (&HealthcheckCommand{Config: "none.yaml"}).Run(t.Context(), &terminal.Streams{})
	require.Equal(t, terminal.BadInput, terminal.StatusOf(err))
}
