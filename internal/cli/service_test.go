package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/terminal"
)

// TestAWrongSchemeHasAHint checks the hints for a URL whose scheme is not that of the service.
func TestAWrongSchemeHasAHint(t *testing.T) {
	t.Parallel()
	nothing := http.NotFoundHandler()
	plain, encrypted := httptest.NewServer(nothing), httptest.NewTLSServer(nothing)
	t.Cleanup(plain.Close)
	t.Cleanup(encrypted.Close)
	known := encrypted.URL // no authority of this machine signed its certificate
	wrong := strings.Replace(plain.URL, "http:", "https:", 1)
	alsoWrong := strings.Replace(encrypted.URL, "https:", "http:", 1)
	for url, want := range map[string]string{
		wrong:     "the service has no TLS: use http:// in --url or CAPPER_URL",
		alsoWrong: "the service probably has TLS: use https:// in --url or CAPPER_URL",
		known:     "if your own authority signed the certificate, set SSL_CERT_FILE to its PEM file",
	} {
		service := &Service{URL: url}
		client, err := service.Client()
		require.NoError(t, err)
		_, err = client.Status(t.Context())
		require.Error(t, err)
		require.Equal(t, want, terminal.Hint(service.Hinted(err)), "%v", err)
	}
}
