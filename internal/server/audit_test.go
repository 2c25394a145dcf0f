package server_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
)

// journal is a log of JSON lines.
type journal struct{ testkit.Log }

// lines returns the log lines with the given message.
func (j *journal) lines(t *testing.T, message string) (lines []map[string]any) {
	t.Helper()
	for text := range strings.Lines(j.String()) {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &line))
		if line["msg"] == message {
			delete(line, "time")
			lines = append(lines, line)
		}
	}
	return lines
}

func newAudited(t *testing.T) (*service, *journal) {
	t.Helper()
	log := &journal{}
	return newService(t, withKeys, func(cfg *server.Config) { cfg.Logger = slog.New(slog.NewJSONHandler(log, nil)) }),
		log
}

func TestEraseAndReleaseLeaveOneAuditLine(t *testing.T) {
	t.Parallel()
	s, log := newAudited(t)
	s.key = "x1.all"
	s.filter(`{"message_id":"m","channel":"push","user_ids":[7,8]}`)
	require.Empty(t, log.lines(t, "audit"), "sends are what the service is for: metrics count them")
	erase := s.request(http.MethodDelete, "/v1/users/7", "")
	erase.Header.Set("X-Request-Id", "trace-7")
	require.Equal(t, http.StatusNoContent, s.do(erase).status)
	released := s.post("/v1/release", `{"message_id":"m","channel":"push","user_ids":[7,8]}`)
	require.Equal(t, []map[string]any{
		{"level": "INFO", "msg": "audit", "action": "erase", "result": "done", "client": "root", "key": "x1",
			"request_id": "trace-7",
			"address":    "127.0.0.1", "user_id": 7.0},
		{"level": "INFO", "msg": "audit", "action": "release", "result": "done", "client": "root", "key": "x1",
			"request_id": released.header.Get("X-Request-Id"), "address": "127.0.0.1",
			"message_id": "m", "channel": "push", "users": 2.0, "unavailable": 0.0},
	}, log.lines(t, "audit"))
}

func TestRefusedKeysAreLoggedAndCannotFillTheLog(t *testing.T) {
	t.Parallel()
	s, log := newAudited(t)
	s.key = "r1.secret-of-support"
	require.Equal(t, http.StatusForbidden, s.call(http.MethodDelete, "/v1/users/7", "").status)
	line := log.lines(t, "audit")[0]
	require.NotEmpty(t, line["request_id"])
	delete(line, "request_id")
	require.Equal(t, map[string]any{"level": "INFO", "msg": "audit", "action": "key", "result": "refused",
		"code":   "forbidden",
		"client": "support", "key": "r1", "address": "127.0.0.1", "method": "DELETE", "path": "/v1/users/7",
		"suppressed": 0.0}, line)

	for _, key := range []string{"r1.wrong", "unknown-secret", "unknown.secret"} {
		s.key = key
		for range 300 {
			require.Equal(t, http.StatusUnauthorized, s.get("/v1/limits").status)
		}
	}
	require.Len(t, log.lines(t, "audit"), 1+10)
	s.clock.Advance(time.Second)
	require.Equal(t, http.StatusUnauthorized, s.get("/v1/limits").status)
	lines := log.lines(t, "audit")
	require.Len(t, lines, 1+10+1)
	require.Equal(t, "r1", lines[1]["key"], "an id that is configured")
	require.Empty(t, lines[11]["key"], "what a caller made up is not logged")
	require.EqualValues(t, 890, lines[11]["suppressed"])
	require.NotContains(t, log.String(), "secret")
	s.key = "f1.secret-of-the-engine"
	require.Equal(t, http.StatusForbidden, s.get("/v1/limits").status)
	require.Len(t, log.lines(t, "audit"), 1+10+1+1, "one flood does not hide another refusal")
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s, _ := newAudited(t)
	s.key = "x1.all"
	ask := func(path string, ids ...string) string {
		r := s.request(http.MethodGet, path, "")
		r.Header["X-Request-Id"] = ids
		answer := s.do(r)
		require.Len(t, answer.header["X-Request-Id"], 1)
		return answer.header.Get("X-Request-Id")
	}
	for _, id := range []string{"a", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "Root=1-67891233-abcdef012345678912345678",
		`{"<!~>"}`, strings.Repeat("x", 128)} {
		require.Equal(t, id, ask("/v1/limits", id))
		require.Equal(t, id, ask("/nowhere", id), "errors have it too")
	}
	seen := map[string]bool{}
	for _, ids := range [][]string{nil, {""}, {"a b"}, {"a\tb"}, {"ä"}, {"a", "b"}, {strings.Repeat("x", 129)}} {
		id := ask("/v1/limits", ids...)
		require.Regexp(t, "^[0-9a-f]{24}$", id, "%q", ids)
		require.False(t, seen[id])
		seen[id] = true
	}
}

func TestUnavailableUsersAreLoggedWithTheRequest(t *testing.T) {
	t.Parallel()
	log := &journal{}
	clock := testkit.NewClockAt(startOfTest)
	held := &heldStore{Store: openStore(t, clock.Now), entered: make(chan int, 10), held: make(chan struct{})}
	s := newServiceOver(t, held, clock, func(cfg *server.Config) {
		cfg.Bounds.CallTimeout = 100 * time.Millisecond
		cfg.Logger = slog.New(slog.NewJSONHandler(log, nil))
	})
	answer := s.post("/v1/filter", `{"message_id":"m","user_ids":[7]}`)
	lines := log.lines(t, "users unavailable")
	require.Len(t, lines, 1)
	require.Equal(t, answer.header.Get("X-Request-Id"), lines[0]["request_id"])
}

func TestUsersAreCountedByClientAndChannel(t *testing.T) {
	t.Parallel()
	s, _ := newAudited(t)
	s.key = "f1.secret-of-the-engine"
	s.filter(`{"message_id":"m","channel":"push","user_ids":[7,8,300]}`)
	s.filter(`{"message_id":"m","channel":"push","user_ids":[7]}`)
	s.filter(`{"message_id":"m","record":false,"user_ids":[1,2,3]}`)
	s.post("/v1/filter", `{"message_id":"m","channel":"fax","user_ids":[7]}`)
	s.key = "x1.all"
	s.filter(`{"message_id":"n","user_ids":[9]}`)
	metrics := string(s.get("/metrics").body)
	for _, line := range []string{
		`capper_client_users_total{channel="push",client="engine",outcome="allowed"} 2`,
		`capper_client_users_total{channel="push",client="engine",outcome="replayed"} 1`,
		`capper_client_users_total{channel="push",client="engine",outcome="denied"} 1`,
		`capper_client_users_total{channel="",client="root",outcome="allowed"} 1`,
		`capper_client_users_total{channel="sms",client="root",outcome="unavailable"} 0`,
	} {
		require.Contains(t, metrics, line+"\n")
	}
	require.NotContains(t, metrics, "fax")
	require.NotContains(t, metrics, `client="support"`, "a key that may not filter")
	require.Equal(t, 2*4*4, strings.Count(metrics, "\ncapper_client_users_total{"), "clients × channels × outcomes")
}

// TestCountersOfRemovedClientsGo checks that a removed client has no counters, and that its running calls do not
// bring the counters back.
func TestCountersOfRemovedClientsGo(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClockAt(startOfTest)
	held := &heldStore{Store: openStore(t, clock.Now), entered: make(chan int, 1), held: make(chan struct{})}
	s := newServiceOver(t, held, clock, withKeys)
	s.key = "f1.secret-of-the-engine"
	answered := make(chan reply, 1)
	go func() { answered <- s.post("/v1/filter", `{"message_id":"m","user_ids":[1]}`) }()
	<-held.entered
	root := s.as("x1.all")
	require.Contains(t, string(root.get("/metrics").body), `client="engine"`)
	require.NoError(t, s.server.SetAccess(gate.Rules{Keys: testKeys()[2:]}))
	close(held.held)
	require.Equal(t, http.StatusOK, (<-answered).status)
	metrics := string(root.get("/metrics").body)
	require.NotContains(t, metrics, `client="engine"`)
	require.Contains(t, metrics, `client="root"`)
	require.NoError(t, s.server.SetAccess(gate.Rules{Keys: testKeys()}))
	require.Contains(t, string(root.get("/metrics").body),
		`capper_client_users_total{channel="push",client="engine",outcome="allowed"} 0`)
}
