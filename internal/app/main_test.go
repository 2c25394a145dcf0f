package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/objects"
	"capper/internal/segments/publish"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testcluster.Run(m)) }

// onEmbedded returns the configuration of an embedded store.
func onEmbedded(dir string) string { return fmt.Sprintf("{embedded: {path: %s/log.db}}", dir) }

func onRedis(addrs ...string) string {
	return fmt.Sprintf("{kind: redis, redis: {addrs: [%s], replica_acks: 0}}", strings.Join(addrs, ", "))
}

// configure returns a configuration with a segments directory and additional server settings, and the service's log.
func configure(t *testing.T, store, server string) (Config, *testkit.Log) {
	t.Helper()
	dir := t.TempDir()
	location, err := objects.Open(t.Context(), dir, objects.S3Config{})
	require.NoError(t, err)
	users := new(bitmap.Set)
	users.Add(7)
	base, err := publish.ReadLiveState(t.Context(), location)
	require.NoError(t, err)
	publisher := publish.Publisher{Location: location}
	_, err = publisher.Publish(t.Context(), &publish.Candidate{Names: []string{"new"},
		Bitmaps: []*bitmap.Bitmap{users.Bitmap()}}, base, "")
	require.NoError(t, err)
	file := filepath.Join(dir, "capper.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `server: {listen: "127.0.0.1:0", stop_delay: 0s, %s}
segments: {source: %s, refresh: 100ms}
store: %s
channels: {push: 1}
limits: {default: {daily: 1}}
`, server, dir, store), 0o600))
	watcher, err := config.NewWatcher(file, time.Now)
	require.NoError(t, err)
	log := new(testkit.Log)
	return Config{Watcher: watcher, Log: log, Clock: time.Now}, log
}

// replace replaces a file atomically, because it may be read at any time.
func replace(t testing.TB, file, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", []byte(content), 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

// begin starts a service that stops without errors at the end of the test.
func begin(t *testing.T, cfg Config) *Service {
	t.Helper()
	s, err := Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

// filter makes a filter call over HTTP and returns the allowed users.
func filter(ctx context.Context, s *Service, message string, users ...capping.UserID) (allowed []capping.UserID,
	err error) {
	body, err := json.Marshal(map[string]any{"message_id": message, "user_ids": users})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Addr().String()+"/v1/filter",
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := new(http.Transport).RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct{ Allowed []capping.UserID }
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", response.Status)
	}
	return answer.Allowed, json.NewDecoder(response.Body).Decode(&answer)
}
