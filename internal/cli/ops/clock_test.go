package ops

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/cli"
	"capper/internal/terminal"
)

// behind is a service whose clock shows a time, and what it was sent.
func behind(t *testing.T, now time.Time, answer http.HandlerFunc) string {
	t.Helper()
	routes := http.NewServeMux()
	routes.HandleFunc("GET /v1/limits", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"channels": map[string]int{"push": 1}})
	})
	routes.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(api.Status{Time: now})
	})
	routes.HandleFunc("POST /v1/sends", answer)
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	return server.URL
}

// imported is what an import of a file says.
func imported(t *testing.T, url, text string) (said string, err error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.csv")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	var out, talk bytes.Buffer
	c := &ImportCommand{Service: cli.Service{URL: url}, Files: []string{name}, Batch: 100, Parallel: 2,
		Patience: time.Second}
	err = c.Run(t.Context(), &terminal.Streams{Program: "capper", Out: terminal.NewWriter(&out),
		Err: terminal.NewWriter(&talk)})
	return talk.String(), err
}

// Times are judged by the service's clock before anything is sent.
func TestTheServicesClockJudges(t *testing.T) {
	t.Parallel()
	now := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	url := behind(t, now, func(_ http.ResponseWriter, r *http.Request) { t.Error("it was called:", r.URL) })
	said, err := imported(t, url, "user_id,at\n1,"+now.Format(time.RFC3339)+"\n2,"+
		now.Add(time.Minute).Format(time.RFC3339)+"\n")
	require.ErrorContains(t, err, "1 of 2 rows are not valid sends")
	require.ErrorContains(t, err, ":3: at: "+now.Add(time.Minute).Format(time.RFC3339)+" is in the future: the time "+
		"is now "+
		now.Format(time.RFC3339))
	require.Equal(t, terminal.BadInput, terminal.StatusOf(err))
	require.Regexp(t, `the clock of the service differs from this machine's by 1h0m\ds`, said)
}

// What an instance refuses all the same is told as files have it, with what is recorded and what to do.
func TestASendThatIsRefusedIsTold(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	url := behind(t, now, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(api.Error{Error: api.Refusal{Code: api.CodeInvalidRequest,
			Message: "sends[1].at: it is in the future", Field: "sends[1].at"}})
	})
	at := now.Add(-time.Minute).Truncate(time.Millisecond)
	text := at.Format("2006-01-02T15:04:05.000Z")
	_, err := imported(t, url, "user_id,at,message_id\n7,"+at.Add(-time.Second).Format(time.RFC3339Nano)+",m\n7,"+text+
		",n\n")
	require.ErrorContains(t, err, "the service rejected the send of user 7 at "+text+` with message id "n": `)
	require.Contains(t, terminal.Hint(err), "all sends before this row are recorded")
}
