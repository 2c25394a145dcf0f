package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
)

// requireNamed requires the request's id in an answer. The tests check it for every answer.
func requireNamed(t testing.TB, r *http.Request, answer reply) {
	t.Helper()
	id := answer.header.Values("X-Request-Id")
	require.Len(t, id, 1)
	if answer.status < 400 || r.Method == http.MethodHead {
		return
	}
	require.Equal(t, "application/json", answer.header.Get("Content-Type"))
	require.Equal(t, id[0], decodeAs[failed](t, answer.body).Error.RequestID)
}

// namedLines requires a request's id in each line that a server logs, in every test.
type namedLines struct {
	slog.Handler
	unnamed *sync.Map // lines without an id, by message
}

func requireNamedLines(t testing.TB, to *slog.Logger) *slog.Logger {
	if to == nil {
		to = slog.New(slog.DiscardHandler)
	}
	lines := namedLines{to.Handler(), new(sync.Map)}
	t.Cleanup(func() {
		lines.unnamed.Range(func(message, _ any) bool {
			t.Errorf("a line of a request without its id: %s", message)
			return true
		})
	})
	return slog.New(lines)
}

// Enabled accepts all lines, independently of the level that the test reads.
func (namedLines) Enabled(context.Context, slog.Level) bool { return true }

func (n namedLines) Handle(ctx context.Context, r slog.Record) error {
	ids := 0
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "request_id" && a.Value.String() != "" {
			ids++
		}
		return true
	})
	if ids != 1 && !strings.HasPrefix(r.Message, "http: ") { // net/http logs these lines about connections
		n.unnamed.Store(fmt.Sprintf("%q, %d ids", r.Message, ids), nil)
	}
	if !n.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return n.Handler.Handle(ctx, r)
}

// ailing is a store whose calls fail or panic.
type ailing struct {
	capping.Store
	panics bool
}

var errAiling = errors.New("the store ails")

func (a *ailing) fail() error {
	if a.panics {
		panic("the store panics")
	}
	return errAiling
}

func (a *ailing) Filter(context.Context, *capping.Batch, []capping.Verdict) error { return a.fail() }
func (a *ailing) Release(context.Context, capping.Token, capping.Channel, []capping.UserID, []capping.Released) error {
	return a.fail()
}
func (a *ailing) Erase(context.Context, capping.UserID) error { return a.fail() }
func (a *ailing) Log(context.Context, capping.UserID) (capping.Log, error) {
	return capping.Log{}, a.fail()
}
func (a *ailing) Merge(context.Context, *capping.Merge, []capping.Merged) error { return a.fail() }

// TestEveryAnswerAndEveryLineHasTheRequestsID checks that the answer to a request and each log line about it have the
// id of the request, for every result.
func TestEveryAnswerAndEveryLineHasTheRequestsID(t *testing.T) {
	t.Parallel()
	log := &journal{}
	configure := func(cfg *server.Config) {
		cfg.Access = gate.Rules{
			Keys:  append(testKeys(), key("s1.slow", "slow", gate.ScopeFilter)),
			Rates: map[string]capping.Rate{"slow": {UsersPerSecond: 1, Burst: 2}},
		}
		cfg.Logger = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		cfg.Bounds.BodyBytes = 1 << 20
	}
	clock := testkit.NewClockAt(startOfTest)
	whole := newServiceOver(t, openStore(t, clock.Now), clock, configure)
	ails := newServiceOver(t, &ailing{Store: openStore(t, clock.Now)}, clock, configure)
	panics := newServiceOver(t, &ailing{openStore(t, clock.Now), true}, clock, configure)
	send := `{"message_id":"m","channel":"push","user_ids":[7,8]}`
	imported := `{"message_id":"m","channel":"push","sends":[{"user_id":7,"at":"2037-11-20T09:00:00Z"}]}`
	for i, c := range []struct {
		on                 *service
		key                string
		method, path, body string
		status             int
		lines              string // some of the required log lines
		contentType, host  string
		header             int // size of the header in bytes
		stopping           bool
	}{
		{on: whole, key: "x1.all", method: "POST", path: "/v1/filter", body: send, status: 200,
			lines: "batch decided, call answered"},
		{on: whole, key: "x1.all", method: "POST", path: "/v1/release", body: send, status: 200, lines: "audit"},
		{on: whole, key: "x1.all", method: "POST", path: "/v1/sends", body: imported, status: 200, lines: "audit"},
		{on: whole, key: "x1.all", method: "DELETE", path: "/v1/users/7", status: 204, lines: "audit"},
		{on: whole, key: "x1.all", method: "POST", path: "/v1/backup", status: 200, lines: "audit"},
		{on: whole, key: "x1.all", method: "GET", path: "/v1/users/7", status: 200, lines: "call answered"},
		{on: whole, key: "x1.all", method: "POST", path: "/v1/filter", body: "{", status: 400, lines: "call answered"},
		{on: whole, key: "x1.wrong", method: "GET", path: "/v1/limits", status: 401, lines: "audit"},
		{on: whole, key: "s1.slow", method: "GET", path: "/v1/limits", status: 403, lines: "audit"},
		{on: whole, key: "x1.all", method: "GET", path: "/nowhere", status: 404},
		{on: whole, key: "x1.all", method: "GET", path: "/v1/filter", status: 405},
		{on: whole, key: "x1.all", method: "POST", path: "/v1/filter", body: strings.Repeat(" ", 2<<20), status: 413},
		{on: whole, key: "x1.all", method: "POST", path: "/v1/filter", body: send, contentType: "text/plain",
			status: 415},
		{on: whole, key: "x1.all", method: "GET", path: "/v1/limits", host: "evil.example", status: 421},
		{on: whole, key: "s1.slow", method: "POST", path: "/v1/filter", body: send, status: 200},
		{on: whole, key: "s1.slow", method: "POST", path: "/v1/filter", body: send, status: 429},
		{on: whole, key: "x1.all", method: "GET", path: "/v1/limits", header: 20_000, status: 431},
		{on: panics, key: "x1.all", method: "POST", path: "/v1/filter", body: send, status: 500, lines: "call failed"},
		{on: panics, key: "x1.all", method: "GET", path: "/v1/users/7", status: 500, lines: "call failed"},
		{on: ails, key: "x1.all", method: "POST", path: "/v1/filter", body: send, status: 200,
			lines: "users unavailable"},
		{on: ails, key: "x1.all", method: "POST", path: "/v1/release", body: send, status: 200,
			lines: "sends not released, audit"},
		{on: ails, key: "x1.all", method: "POST", path: "/v1/sends", body: imported, status: 200,
			lines: "sends not imported, audit"},
		{on: ails, key: "x1.all", method: "GET", path: "/v1/users/7", status: 503, lines: "call not answered"},
		{on: ails, key: "x1.all", method: "DELETE", path: "/v1/users/7", status: 503, lines: "call not answered"},
		{on: whole, key: "x1.all", method: "GET", path: "/readyz", status: 503, stopping: true},
	} {
		if c.stopping {
			c.on.server.BeginStop()
		}
		name, before, id := fmt.Sprintf("%s %s %d", c.method, c.path, c.status), len(log.String()),
			fmt.Sprintf("call-%d", i)
		r := c.on.request(c.method, c.path, c.body)
		r.URL.Host = c.on.start(nil)
		r.Host = r.URL.Host
		if c.host != "" {
			r.Host = c.host
		}
		r.Header.Set("Authorization", "Bearer "+c.key)
		r.Header.Set("X-Request-Id", id)
		if c.contentType != "" {
			r.Header.Set("Content-Type", c.contentType)
		}
		if c.header > 0 {
			r.Header.Set("X-More", strings.Repeat("x", c.header))
		}
		response, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err, name)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err, name)
		require.NoError(t, response.Body.Close())
		require.Equal(t, c.status, response.StatusCode, "%s: %s", name, body)
		answer := reply{response.StatusCode, response.Header, body}
		requireNamed(t, r, answer)
		require.Equal(t, id, answer.header.Get("X-Request-Id"), name)
		// The last log line of the request.
		testkit.Eventually(t, func() bool { return strings.Contains(log.String()[before:], `"call answered"`) })
		said := map[string]bool{}
		for text := range strings.Lines(log.String()[before:]) {
			var line struct {
				Msg       string
				RequestID string `json:"request_id"`
			}
			require.NoError(t, json.Unmarshal([]byte(text), &line))
			if strings.HasPrefix(line.Msg, "http: ") {
				continue
			}
			require.Equal(t, id, line.RequestID, "%s: %s", name, text)
			said[line.Msg] = true
		}
		for _, line := range strings.Split(c.lines, ", ") {
			require.True(t, line == "" || said[line], "%s: no line %q: %v", name, line, said)
		}
	}
}
