package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

func TestServeDecidesABatch(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}, segments: {active: {daily: 2, weekly: 7}, ghost: {daily: 1}}}"))

	first, err := p.filter("promo-1", 0, 7, 1500, 4294967295)
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 7, 1500, 4294967295}, first.Allowed)
	second, err := p.filter("promo-2", 0, 7, 1500, 4294967295)
	require.NoError(t, err)
	require.Equal(t, []uint32{1500}, second.Allowed)
	require.Len(t, second.Denied, 3)
	require.Equal(t, "daily", second.Denied[1].Limit)
	require.Equal(t, "new", second.Denied[1].Segment)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), second.Denied[1].RetryAt, time.Minute)
	again, err := p.filter("promo-2", 1500)
	require.NoError(t, err)
	require.Equal(t, []uint32{1500}, again.Replayed)

	status := p.get("/v1/status")
	require.Contains(t, fmt.Sprint(status["config"]), "ghost", "a configured segment that is not published is reported")
	require.Contains(t, fmt.Sprint(status["config"]), "new", "so is a published one without limits")

	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.cmd.ProcessState.ExitCode(), "%s", p.log)
}

// A load balancer sees that the service is going before it is gone.
func TestNotReadyBeforeConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}")
	write(t, file, strings.Replace(readFile(t, file), "stop_delay: 0s", "stop_delay: 10s", 1))
	p := serve(t, file)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	testkit.Eventually(t, func() bool {
		response, err := http.Get(p.url + "/readyz")
		require.NoError(t, err)
		response.Body.Close()
		return response.StatusCode == http.StatusServiceUnavailable
	})
	got, err := p.filter("still", 7)
	require.NoError(t, err)
	require.Equal(t, []uint32{7}, got.Allowed)
	<-p.exited
	require.Equal(t, 0, p.cmd.ProcessState.ExitCode())
}

func TestSegmentsAreRefreshedAndABadGenerationIsRefused(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}, segments: {new: {daily: 0}}}")
	p := serve(t, file)
	place := filepath.Join(filepath.Dir(file), "segments")
	got, err := p.filter("m", 5, 1_000_005)
	require.NoError(t, err)
	require.Equal(t, []uint32{1_000_005}, got.Allowed)

	publish(t, place, "new=1000000-1000100")
	testkit.Eventually(t, func() bool { return p.get("/v1/status")["generation"] != got.Generation })
	got, err = p.filter("m2", 5, 1_000_006)
	require.NoError(t, err)
	require.Equal(t, []uint32{5}, got.Allowed)
	p.logs(`msg=audit action=refresh result=accepted .* generation=` + got.Generation + ` before=\d`)

	require.NoError(t, os.WriteFile(filepath.Join(place, "current.json"), nil, 0o600))
	testkit.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(p.get("/v1/status")["segments"]),
			"error:")
	})
	require.Equal(t, got.Generation, p.get("/v1/status")["generation"])
	got, err = p.filter("m3", 6)
	require.NoError(t, err)
	require.Equal(t, []uint32{6}, got.Allowed)
}

// live is the generation that current.json names.
func live(t *testing.T, place string) string {
	t.Helper()
	m := regexp.MustCompile(`"generation": "([^"]+)"`).FindStringSubmatch(readFile(t,
		filepath.Join(place, "current.json")))
	require.NotNil(t, m)
	return m[1]
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	t.Run("a second process on the same directory", func(t *testing.T) {
		t.Parallel()
		file := configure(t, "{default: {daily: 1}}")
		serve(t, file)
		second := launch(t, file)
		<-second.exited
		require.Equal(t, 1, second.cmd.ProcessState.ExitCode())
		require.Contains(t, second.log.String(), "another capper process has the store open")
	})
	t.Run("segments that were never published", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		file := filepath.Join(dir, "capper.yaml")
		write(t, file, embedded(dir, "{default: {daily: 1}}"))
		p := launch(t, file)
		<-p.exited
		require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
		require.Contains(t, p.log.String(), "capper: error: load segments from "+dir)
		require.Contains(t, p.log.String(), "hint: segmentbuild build --to")
	})
	t.Run("an address in use", func(t *testing.T) {
		t.Parallel()
		file := configure(t, "{default: {daily: 1}}")
		p := serve(t, file)
		dir := t.TempDir()
		publish(t, filepath.Join(dir, "segments"), "new=1-2")
		other := filepath.Join(dir, "capper.yaml")
		write(t, other, strings.Replace(embedded(dir, "{default: {daily: 1}}"), "127.0.0.1:0",
			strings.TrimPrefix(p.url, "http://"), 1))
		second := launch(t, other)
		<-second.exited
		require.Equal(t, 1, second.cmd.ProcessState.ExitCode())
		require.Contains(t, second.log.String(), "address already in use")
	})
}

func TestMetricsHoldNoUser(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}}"))
	for _, message := range []string{"a", "b"} {
		_, err := p.filter(message, 424_242_424)
		require.NoError(t, err)
	}
	response, err := http.Get(p.url + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	text := string(body)
	require.NotContains(t, text, "424242424")
	for _, metric := range []string{
		`capper_http_requests_total{`, `capper_http_request_seconds_bucket{`, `capper_users_total{`,
		`capper_store_calls_total{`,
		`capper_segments_generation_age_seconds`, `capper_config_reloads_total{result="refused"} 0`,
	} {
		require.Contains(t, text, metric)
	}
}
