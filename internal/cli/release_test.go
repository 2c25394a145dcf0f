package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/terminal"
)

// TestMissingSendsHaveAHint checks that the command says how to release sends that the audit lacks.
func TestMissingSendsHaveAHint(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"message_id":"promo","found":2,"released":0,"absent":2,"unavailable":0,"missing":1}`)
	}))
	t.Cleanup(server.Close)
	on := &terminal.Streams{Program: "capper", Out: terminal.NewWriter(io.Discard), Err: terminal.NewWriter(io.Discard)}
	err := Release(t.Context(), on, &Service{URL: server.URL}, &client.MessageRelease{MessageID: "promo"})
	require.ErrorContains(t, err, "some sends of the message could not be released (cancelled) yet")
	require.Equal(t, terminal.Undecided, terminal.StatusOf(err))
	require.Contains(t, terminal.Hint(err), "unless the users were erased, release them by capper release AUDIENCE "+
		"--message-id")
}
