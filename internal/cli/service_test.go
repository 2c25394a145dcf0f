package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client"
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
		api, err := service.Client()
		require.NoError(t, err)
		_, err = api.Status(t.Context())
		require.Error(t, err)
		require.Equal(t, want, terminal.Hint(service.Hinted(err)), "%v", err)
	}
}

// TestTheAdminListenerHasAHint checks the hint for a command that the admin listener does not answer.
func TestTheAdminListenerHasAHint(t *testing.T) {
	t.Parallel()
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusMethodNotAllowed)
		_, _ = io.WriteString(w, `{"error":{"code":"method_not_allowed","message":"only GET"}}`)
	}))
	t.Cleanup(admin.Close)
	service := &Service{URL: admin.URL}
	api, err := service.Client()
	require.NoError(t, err)
	_, err = api.ChangeSet(t.Context(), "opted-out", client.SetChange{Add: []uint32{1}})
	require.Error(t, err)
	require.Equal(t, "--url must name the listener of the API (server.listen), not the admin listener "+
		"(server.admin_listen)", terminal.Hint(service.HintedLists(err)))
}
