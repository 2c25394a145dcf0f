package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/segments/segmentstest"
	"capper/internal/server"
	"capper/internal/testkit"
)

// testSegments are segments in ranges of ids.
type testSegments struct {
	segmentstest.WithoutSets

	names  []string
	lookup func(user capping.UserID) uint8
}

func (s *testSegments) Generation() string { return "2037-11-20T080000Z-1" }
func (s *testSegments) Names() []string    { return s.names }
func (s *testSegments) Lookup(numbers []uint32, codes []uint8) {
	for i, number := range numbers {
		user := capping.UserID(number)
		codes[i] = s.lookup(user)
	}
}

// byHundred assigns users 0–99 to new, 100–199 to active, 200–299 to vip, 300–399 to blocked and 400–499 to free.
// Other users have no segment.
func byHundred(user capping.UserID) uint8 {
	if user < 500 {
		return uint8(user/100) + 1
	}
	return 0
}

const (
	push  capping.Channel = 1
	email capping.Channel = 2
)

func testPolicy() *capping.Policy {
	day, week := 24*time.Hour, 7*24*time.Hour
	return &capping.Policy{
		Version:  "policy-1",
		Channels: map[string]capping.Channel{"push": push, "email": email, "sms": 3},
		Default:  []capping.Limit{{Name: "daily", Max: 1, Window: day}, {Name: "weekly", Max: 3, Window: week}},
		Segments: map[string][]capping.Limit{
			"new":    {{Name: "daily", Max: 1, Window: day}, {Name: "weekly", Max: 3, Window: week}},
			"active": {{Name: "daily", Max: 2, Window: day}, {Name: "weekly", Max: 7, Window: week}},
			"vip": {
				{Name: "push-gap", Max: 1, Window: 30 * time.Minute, Channels: capping.ChannelSetOf(push)},
				{Name: "email-day", Max: 1, Calendar: capping.CalendarDay, Location: time.UTC,
					Channels: capping.ChannelSetOf(email)},
			},
			"blocked": {{Name: "never", Max: 0, Window: day}},
			"free":    {},
		},
	}
}

// service is a server under test, called over HTTP.
type service struct {
	t      testing.TB
	clock  *testkit.Clock
	server *server.Server
	http   *httptest.Server
	capper *capping.Capper
	key    string
}

var startOfTest = time.Date(2037, 11, 20, 9, 12, 44, 120e6, time.UTC)

// newService returns a service with a separate store. The function change may change the configuration first.
func newService(t testing.TB, change ...func(*server.Config)) *service {
	t.Helper()
	clock := testkit.NewClockAt(startOfTest)
	return newServiceOver(t, openStore(t, clock.Now), clock, change...)
}

func newServiceOver(t testing.TB, store capping.Store, clock *testkit.Clock, change ...func(*server.Config)) *service {
	t.Helper()
	generation := &testSegments{names: []string{"new", "active", "vip", "blocked", "free"}, lookup: byHundred}
	s := &service{t: t, clock: clock}
	s.capper = capping.New(store, func() capping.Segments { return generation }, testPolicy(), clock.Now)
	cfg := server.Config{Capper: s.capper, Clock: clock.Now}
	for _, f := range change {
		f(&cfg)
	}
	s.capper = cfg.Capper
	if cfg.Bounds.CallTimeout == 0 {
		cfg.Bounds.CallTimeout = time.Minute // some tests need a slow store
	}
	if _, test := t.(*testing.T); test { // not in benchmarks
		cfg.Logger = requireNamedLines(t, cfg.Logger)
	}
	var err error
	s.server, err = server.New(cfg)
	require.NoError(t, err)
	s.server.SetReady(true)
	s.http = httptest.NewServer(s.server.Public())
	t.Cleanup(s.http.Close)
	return s
}

// with returns the service for a subtest.
func (s *service) with(t *testing.T) *service {
	sub := *s
	sub.t = t
	return &sub
}

// reply is an answer of the service.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (s *service) do(r *http.Request) reply {
	s.t.Helper()
	if s.key != "" {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	sent, err := r.GetBody()
	require.NoError(s.t, err)
	request, err := io.ReadAll(sent)
	require.NoError(s.t, err)
	response, err := s.http.Client().Do(r)
	require.NoError(s.t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	answer := reply{response.StatusCode, response.Header, body}
	requireNamed(s.t, r, answer)
	requireContract(s.t, r, request, answer)
	return answer
}

func (s *service) request(method, path, body string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.http.URL+path, bytes.NewReader([]byte(body)))
	require.NoError(s.t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (s *service) call(method, path, body string) reply {
	s.t.Helper()
	return s.do(s.request(method, path, body))
}

func (s *service) get(path string) reply { return s.call(http.MethodGet, path, "") }

func (s *service) post(path string, body any) reply {
	s.t.Helper()
	if text, ok := body.(string); ok {
		return s.call(http.MethodPost, path, text)
	}
	encoded, err := json.Marshal(body)
	require.NoError(s.t, err)
	return s.call(http.MethodPost, path, string(encoded))
}

// filtered is the answer to a filter call.
type filtered struct {
	Allowed           []uint32
	Replayed          []uint32
	Denied            []denied
	Unavailable       []uint32
	AllowedBitmap     string            `json:"allowed_bitmap"`
	ReplayedBitmap    string            `json:"replayed_bitmap"`
	DeniedBitmaps     map[string]string `json:"denied_bitmaps"`
	UnavailableBitmap string            `json:"unavailable_bitmap"`
	Waves             []waved
	Summary           summary
	Generation        string
	ConfigVersion     string `json:"config_version"`
}

type denied struct {
	UserID  uint32 `json:"user_id"`
	Segment string
	Limit   string
	Max     int
	RetryAt *string `json:"retry_at"`
}

type waved struct {
	From        string
	ReadyAt     string   `json:"ready_at"`
	UserIDs     []uint32 `json:"user_ids"`
	UsersBitmap string   `json:"users_bitmap"`
}

type summary struct {
	Requested, Allowed, Unavailable, Duplicates, Replayed int
	Denied                                                map[string]int
	Segments                                              map[string]segmentCounts
}

type segmentCounts struct{ Requested, Allowed int }

type fields map[string]any

// filter calls POST /v1/filter, which must succeed.
func (s *service) filter(body any) *filtered {
	s.t.Helper()
	r := s.post("/v1/filter", body)
	require.Equal(s.t, http.StatusOK, r.status, string(r.body))
	return decodeAs[filtered](s.t, r.body)
}

func decodeAs[T any](t testing.TB, body []byte) *T {
	t.Helper()
	var v T
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&v), string(body))
	return &v
}

// failed is the answer to a refused call.
type failed struct {
	Error struct {
		Code, Message, Field string
		Column               int
		RequestID            string `json:"request_id"`
	}
	Unavailable    []uint32
	UnavailableIDs []string `json:"unavailable_ids"`

	UnavailableImages []string `json:"unavailable_images"`
}

func (r reply) failure(t testing.TB) *failed {
	t.Helper()
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	f := decodeAs[failed](t, r.body)
	require.NotEmpty(t, f.Error.RequestID)
	require.Equal(t, r.header.Get("X-Request-Id"), f.Error.RequestID)
	f.Error.RequestID = ""
	return f
}

func bitmapText(t testing.TB, users ...uint32) string {
	t.Helper()
	b := roaring.BitmapOf(users...)
	b.RunOptimize()
	raw, err := b.ToBytes()
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(raw)
}

func bitmapOf(t testing.TB, text string) []uint32 {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	b := roaring.New()
	n, err := b.ReadFrom(bytes.NewReader(raw))
	require.NoError(t, err)
	require.EqualValues(t, len(raw), n)
	require.NoError(t, b.Validate())
	return b.ToArray()
}

func span(from, to uint32) (users []uint32) {
	for user := from; user < to; user++ {
		users = append(users, user)
	}
	return users
}

func keys[V any](m map[string]V) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
