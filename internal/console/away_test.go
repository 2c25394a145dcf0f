package console_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/console"
	"capper/internal/server/gate"
)

// TestPagesReportAStoreThatIsAway checks that pages that read the store ask nothing of a store that is away.
func TestPagesReportAStoreThatIsAway(t *testing.T) {
	t.Parallel()
	s := newService(t, gate.Rules{})
	state := "down"
	calls := 0
	inside := s.server.Inside()
	pages, err := console.New(console.Config{
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/status" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"store": {"kind": "redis", "state": "` + state + `"}}`))
				return
			}
			calls++
			inside.ServeHTTP(w, r)
		}),
		Access: s.server.Access, SignIn: s.server.SignIn, Clock: s.clock.Now, Recent: s.recent,
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	see := func(path string) (int, string) {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/console/"+path,
			nil))
		return w.Code, w.Body.String()
	}
	for _, path := range []string{"campaigns", "campaign?id=a", "users?id=7", "pacers", "try?audience=new"} {
		status, page := see(path)
		require.Equal(t, http.StatusServiceUnavailable, status, path)
		require.Contains(t, page, "The store does not answer", path)
		require.Contains(t, page, "Try again", path)
		require.Zero(t, calls, path)
	}
	status, page := see("")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, page, "the numbers of the last day cannot be read now")
	status, _ = see("limits")
	require.Equal(t, http.StatusOK, status)
	state = "ok"
	status, page = see("campaigns")
	require.Equal(t, http.StatusOK, status, page)
}
