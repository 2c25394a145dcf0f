package browsertest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/app"
	"capper/internal/config"
	"capper/internal/testkit"
)

// These constants are the API keys of a test Service with Setup.Keys, one for each kind of visitor.
const (
	Reader  = "reader.s3cr3t-of-the-reader"   // may read
	Admin   = "admin.s3cr3t-of-the-admin"     // may read and erase
	Engine  = "engine.s3cr3t-of-the-engine"   // may send, but not read
	Partner = "partner.s3cr3t-of-the-partner" // may read and send in a namespace of its own
)

// A Setup contains the settings of a Service for a test.
type Setup struct {
	Keys    bool      // use the API keys above; false: everybody on this machine may make all calls
	Audit   bool      // record all decisions in an audit
	Redis   string    // address of the store; "": embedded store
	Slowly  bool      // Samples takes almost a minute, so that the overview has counts at several times
	Now     time.Time // time of the clock at the end of the samples; zero: the current time
	History bool      // Samples begins with campaigns one week before, and sets titles
	Without string    // line of the configuration to remove
	With    string    // text to add to the configuration
}

// Service is a capper service that runs in the process of the test. By default, the test Service uses the embedded
// store. A test Service has the sample configuration, the sample segments and sets, and a clock that only the test
// advances.
type Service struct {
	URL   string
	Clock *testkit.Clock
	Dir   string // directory of the configuration, the segments and the audit

	t     testing.TB
	setup Setup
	app   *app.Service
	ends  time.Time
}

// Serve starts a capper service for a test, and stops it at the end of the test. The clock of the test service begins
// before the first sample call, and Samples advances it to Setup.Now.
func Serve(t testing.TB, setup Setup) *Service {
	t.Helper()
	s := &Service{t: t, setup: setup, Dir: t.TempDir(), ends: setup.Now}
	if s.ends.IsZero() {
		s.ends = time.Now().Truncate(time.Second)
	}
	before := 26 * time.Hour
	if setup.History {
		before = 10 * 24 * time.Hour
	}
	s.Clock = testkit.NewClockAt(s.ends.Add(-before))
	s.Publish()
	s.Configure()
	s.Start()
	t.Cleanup(func() { require.NoError(t, s.app.Stop()) })
	return s
}

// Start starts the capper service again, after a call of Stop.
func (s *Service) Start() {
	s.t.Helper()
	watcher, err := config.NewWatcher(s.file(), s.Clock.Now)
	require.NoError(s.t, err)
	s.app, err = app.Start(s.t.Context(), app.Config{Watcher: watcher, Clock: s.Clock.Now})
	require.NoError(s.t, err)
	s.URL = "http://" + s.app.Addr().String()
}

func (s *Service) file() string { return filepath.Join(s.Dir, "capper.yaml") }

// Configure writes the configuration file of the service: the sample configuration with the changes in Setup.
func (s *Service) Configure(keys ...string) {
	s.t.Helper()
	sample, err := os.ReadFile(filepath.Join(testkit.Root(), "testdata", "capper.yaml"))
	require.NoError(s.t, err)
	text := string(sample)
	change := func(was, is string) {
		require.Equal(s.t, 1, strings.Count(text, was), was)
		text = strings.Replace(text, was, is, 1)
	}
	change("  listen: 127.0.0.1:8080 ", "  listen: 127.0.0.1:0 ")
	change("  call_timeout: 5s ", "  stop_delay: 0s\n"+s.keys(keys)+"  call_timeout: 5s ")
	change("  refresh: 2s ", "  refresh: 100ms ")
	if s.setup.Audit && !strings.Contains(text, "\naudit:") {
		text += "audit: {to: audit}\n"
	}
	if s.setup.Redis != "" {
		change("  kind: embedded ", "  redis: {addrs: ['"+s.setup.Redis+
			"'], clock_skew: 1m, replica_acks: 0}\n  kind: redis ")
		change("  embedded: {path: log.db}", "  ")
	}
	if s.setup.Without != "" {
		change(s.setup.Without, "")
	}
	text += s.setup.With + "\n"
	// The file is written under another name first, so that a reload never reads an incomplete file.
	require.NoError(s.t, os.WriteFile(s.file()+".next", []byte(text), 0o600))
	require.NoError(s.t, os.Rename(s.file()+".next", s.file()))
}

// The method "keys" returns the configuration section with the API keys, without those keys that the arguments name.
func (s *Service) keys(without []string) string {
	if !s.setup.Keys {
		return ""
	}
	text := "  api_keys:\n"
	for _, key := range []struct{ key, rest string }{
		{Reader, "scopes: [read]"},
		{Admin, "scopes: [read, admin]"},
		{Engine, "scopes: [filter]"},
		{Partner, "scopes: [filter, read], namespace: partner"},
	} {
		if slices.Contains(without, key.key) {
			continue
		}
		id, _, _ := strings.Cut(key.key, ".")
		sum := sha256.Sum256([]byte(key.key))
		text += "    - {client: " + id + ", id: " + id + ", sha256: " + hex.EncodeToString(sum[:]) + ", " + key.rest +
			"}\n"
	}
	return text
}

// Client returns an API client for calls to the test service. If the test service has no API keys, Client ignores the
// key.
func (s *Service) Client(key string) *client.Client {
	s.t.Helper()
	if !s.setup.Keys {
		key = ""
	}
	c, err := client.New(client.Config{URL: s.URL, Key: key})
	require.NoError(s.t, err)
	return c
}

// Get makes a GET request to the API, and decodes the response body into the argument "answer".
func (s *Service) Get(path string, answer any) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+path, nil)
	require.NoError(s.t, err)
	if s.setup.Keys {
		request.Header.Set("Authorization", "Bearer "+Reader)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	require.Equal(s.t, http.StatusOK, response.StatusCode, path)
	require.NoError(s.t, json.NewDecoder(response.Body).Decode(answer))
}
