package server

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"capper/client/api"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
	"capper/internal/trace"
)

// The method audit logs an action of a client and the result of the action. The log message is always "audit".
func (s *Server) audit(c *call, action, result string, attrs ...any) {
	line := []any{"action", action, "result", result, "client", c.Client, "key", c.Key,
		"address", gate.AddressOf(c.r.RemoteAddr)}
	s.log.InfoContext(c.ctx, "audit", append(line, attrs...)...)
}

// auditRefusal logs that the server refused an API key. For each error code, a separate logBound limits the number of
// log lines.
func (s *Server) auditRefusal(c *call, f *wire.Failure) {
	if f.Code != api.CodeUnauthorized && f.Code != api.CodeForbidden {
		return
	}
	suppressed, ok := s.refusals[f.Code].take(s.clock())
	if !ok {
		return
	}
	path := c.r.URL.Path
	if s.ids != nil && strings.HasPrefix(path, usersPath) { // log lines must not contain user ids
		path = usersPath + "…"
	}
	line := []any{"code", f.Code, "method", c.r.Method, "path", wire.Clip([]byte(path)), "suppressed", suppressed}
	if f.Field != "" {
		line = append(line, "field", f.Field)
	}
	s.audit(c, "key", "refused", line...)
}

// logBound limits log lines to a burst, and afterwards to one line a second, so that callers without a key cannot flood
// the log.
type logBound struct {
	mu         sync.Mutex
	full       time.Time // when the whole burst is available again
	suppressed int
}

const logBurst = 10

// The method take reports whether the server may write a log line now, and returns the number of lines suppressed since
// the last written line.
func (b *logBound) take(now time.Time) (suppressed int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full.Before(now) {
		b.full = now
	}
	if b.full.Sub(now) > (logBurst-1)*time.Second {
		b.suppressed++
		return 0, false
	}
	b.full = b.full.Add(time.Second)
	suppressed, b.suppressed = b.suppressed, 0
	return suppressed, true
}

// newLogBounds returns a separate logBound for each reason to refuse an API key. With one logBound for each reason,
// frequent refusals for one reason do not suppress the log lines for the other reasons.
func newLogBounds() map[api.Code]*logBound {
	return map[api.Code]*logBound{api.CodeUnauthorized: {}, api.CodeForbidden: {}}
}

// AuditFile logs a change that no API call made, for example a new configuration file or a new generation of segments
// (published version). The log line that AuditFile writes has the form of the audit lines for API calls.
func AuditFile(logger *slog.Logger, action, result string, attrs ...any) {
	line := []any{"action", action, "result", result, "client", "", "key", "", "request_id", trace.NewID(time.Now())}
	logger.Info("audit", append(line, attrs...)...)
}

// SignIn returns the caller to whom an API key belongs. The key needs the scope read. SignIn logs accepted and
// refused API keys in the same form as API calls do. After several wrong keys with one key id from one network
// address, further sign-ins with this key id from this address must wait.
func (s *Server) SignIn(r *http.Request, key string) (gate.Caller, error) {
	c := &call{r: r, ctx: r.Context()}
	if trace.RequestID(c.ctx) == "" {
		c.ctx = trace.WithID(c.ctx, trace.IDOf(r.Header, time.Now()))
	}
	right, err := s.guesses.Try(gate.AddressOf(r.RemoteAddr), key)
	if err != nil {
		return gate.Caller{}, err
	}
	c.Caller, err = s.access.Load().Caller("Bearer "+key, gate.ScopeRead)
	if err == nil || wire.FailureOf(err).Code == api.CodeForbidden {
		right()
	}
	if err != nil {
		s.auditRefusal(c, wire.FailureOf(err))
		return gate.Caller{}, err
	}
	s.audit(c, "sign-in", "done")
	return c.Caller, nil
}
