package console_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/console"
	"capper/internal/messages"
	"capper/internal/pacing"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
)

// The tests use these keys.
const (
	reader   = "reader.secret-of-the-reader"
	admin    = "admin.secret-of-the-admin"
	filterer = "filterer.secret-of-the-filterer"
)

func key(text string, scopes ...gate.Scope) gate.Key {
	sum, id := sha256.Sum256([]byte(text)), strings.Split(text, ".")[0]
	return gate.Key{ID: id, Client: "client-" + id, SHA256: hex.EncodeToString(sum[:]), Scopes: scopes}
}

func keys() gate.Rules {
	return gate.Rules{Keys: []gate.Key{
		key(reader, gate.ScopeRead), key(admin, gate.ScopeRead, gate.ScopeAdmin),
		key(filterer, gate.ScopeFilter),
	}}
}

// oneSegment is a generation in which every user is new.
type oneSegment struct{ segmentstest.WithoutSets }

func (oneSegment) Generation() string { return "20261120T080000.000Z-00000001" }
func (oneSegment) Names() []string    { return []string{"new"} }
func (oneSegment) Lookup(numbers []uint32, codes []uint8) {
	for i := range numbers {
		codes[i] = 1
	}
}

// service is a server with its console and an embedded store.
type service struct {
	t      *testing.T
	clock  *testkit.Clock
	server *server.Server
	recent *console.Series
	pacers *pacing.Pacers
	url    string
	log    *lines
	jar    map[string]*http.Cookie // the browser's cookies
	header http.Header             // of each request
	sent   int                     // messages so far
}

// pacers is the policy of the service.
var pacers = pacing.Policy{Version: "policy-1", Pacers: []pacing.Pacer{
	{Name: "carrier", Rate: pacing.Rate{Permits: 250, Per: time.Second}},
	{Name: "number", Rate: pacing.Rate{Permits: 1, Per: time.Second},
		Limits: []pacing.Limit{{Max: 40, Window: time.Hour}}, Per: pacing.PerKey},
	{Name: "campaign", Limits: []pacing.Limit{{Max: 50, Window: time.Hour}}, Per: pacing.PerMessage},
}}

var startOfTest = time.Date(2026, 11, 20, 9, 12, 44, 0, time.UTC)

// newService serves with the given keys, or openly without any.
func newService(t *testing.T, rules gate.Rules, change ...func(*console.Config)) *service {
	t.Helper()
	s := &service{t: t, clock: testkit.NewClockAt(startOfTest), recent: console.NewSeries(startOfTest), log: &lines{},
		jar: map[string]*http.Cookie{}, header: http.Header{}}
	store, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: t.TempDir(), Clock: s.clock.Now,
		ClockBound: math.MaxInt64, CacheBytes: 8 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	s.pacers = pacing.New(store, &pacers)
	policy := &capping.Policy{
		Version: "policy-1", Channels: map[string]capping.Channel{"push": 1},
		Default: []capping.Limit{{Name: "daily", Max: 1, Window: 24 * time.Hour}},
		Segments: map[string][]capping.Limit{"new": {{Name: "daily", Max: 2, Window: 24 * time.Hour},
			{Name: "strict", Max: 1, Window: time.Hour, Shadow: true}}},
	}
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	counter, err := messages.NewCounter(store, nil, nil)
	require.NoError(t, err)
	s.server, err = server.New(server.Config{
		MessageCounts: counter,
		Capper:        capping.New(store, func() capping.Segments { return oneSegment{} }, policy, s.clock.Now),
		Clock:         s.clock.Now, Access: rules, Logger: logger, Pacers: s.pacers,
	})
	require.NoError(t, err)
	s.server.SetReady(true)
	cfg := console.Config{
		API: s.server.Inside(), Access: s.server.Access, SignIn: s.server.SignIn, Clock: s.clock.Now, Logger: logger,
		Recent: s.recent,
	}
	for _, f := range change {
		f(&cfg)
	}
	pages, err := console.New(cfg)
	require.NoError(t, err)
	http := httptest.NewServer(s.server.Beside(s.server.Public(), console.Path, pages))
	t.Cleanup(http.Close)
	s.url = http.URL
	return s
}

// lines collects log lines.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// permits takes permits with an API key.
func (s *service) permits(key, body string) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/v1/permits", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	s.server.Public().ServeHTTP(w, r)
	require.Equal(s.t, http.StatusOK, w.Code, w.Body)
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   string
}

// do makes a request like a browser that follows no redirects.
func (s *service) do(method, path string, form url.Values) reply {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(form.Encode()))
	require.NoError(s.t, err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range s.header {
		r.Header[name] = values
	}
	for _, cookie := range s.jar {
		r.AddCookie(cookie)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	for _, cookie := range answer.Cookies() {
		if s.jar[cookie.Name] = cookie; cookie.MaxAge < 0 {
			delete(s.jar, cookie.Name)
		}
	}
	if answer.StatusCode == http.StatusServiceUnavailable {
		require.NotEmpty(s.t, answer.Header.Get("Retry-After"), path)
	}
	return reply{answer.StatusCode, answer.Header, string(body)}
}

func (s *service) get(path string) reply {
	s.t.Helper()
	return s.do(http.MethodGet, path, nil)
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]*)"`)

// token returns the token in the first form of a page.
func (r reply) token(t *testing.T) string {
	t.Helper()
	found := tokenField.FindStringSubmatch(r.body)
	require.NotNil(t, found, "%s", r.body)
	return found[1]
}

// signIn submits the key in the sign-in form that leads to next.
func (s *service) signIn(key, next string) reply {
	s.t.Helper()
	form := s.get("/console/sign-in")
	return s.do(http.MethodPost, "/console/sign-in", url.Values{"token": {form.token(s.t)}, "key": {key},
		"next": {next}})
}

// TestAPageThatCannotBeAnsweredSaysWhenToAskAgain checks that an unavailable page has a Retry-After header. The
// method do requires it for all pages.
func TestAPageThatCannotBeAnsweredSaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	s := newService(t, gate.Rules{})
	r := s.get("/console/segments/changes?from=a&to=b")
	require.Equal(t, http.StatusServiceUnavailable, r.status, r.body)
	require.Equal(t, "1", r.header.Get("Retry-After"))
}
