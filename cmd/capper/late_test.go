package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// isPaused reports whether every thread of a process is stopped.
func isPaused(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	require.NoError(t, err)
	for _, thread := range threads {
		if text, err := os.ReadFile(thread); err == nil && !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return true
}

// TestALateCallUndoesNothing pauses an instance while callers give calls up and repeat them at the other instance. What
// the callers do after the answer stays when the paused instance goes on: sends that follow a release, a release that
// follows a send, and additions to a set that follow a removal.
func TestALateCallUndoesNothing(t *testing.T) {
	t.Parallel()
	redis := testcluster.Single(t, testcluster.Options{}).Addrs[0]
	const rest = "{default: {daily: 1}}\nsuppress: {stop: all}\nsets: {stop: {live: true}}"
	paused, other := serve(t, onServer(t, redis, "{push: 1}", rest)), serve(t, onServer(t, redis, "{push: 1}", rest))
	users := func(from int) (list []uint32) {
		for i := range 100 {
			list = append(list, uint32(from+i))
		}
		return list
	}
	resent, released, stopped := users(1000), users(2000), users(3000)
	call := func(message string, users []uint32) map[string]any {
		return map[string]any{"message_id": message, "channel": "push", "user_ids": users}
	}
	allowed := func(message string, users []uint32) int {
		got, err := other.filter(message, users...)
		require.NoError(t, err)
		return len(got.Allowed)
	}
	require.Equal(t, 100, allowed("m", resent))
	answered := func(path string) bool { // by the paused instance
		return counter(t, paused, fmt.Sprintf(`capper_http_request_seconds_count{route="%s"}`, path)) > 0
	}
	paths := []string{"/v1/release", "/v1/filter", "/v1/sets/{set}/members"}

	require.NoError(t, paused.cmd.Process.Signal(syscall.SIGSTOP))
	testkit.Eventually(t, func() bool { return isPaused(t, paused.cmd.Process.Pid) })
	hasty := http.Client{Timeout: 200 * time.Millisecond}
	for _, lost := range []struct {
		path    string
		request map[string]any
	}{
		{paths[0], call("m", resent)},
		{paths[1], call("m", released)},
		{"/v1/sets/stop/members", map[string]any{"remove": stopped}},
	} {
		body, err := json.Marshal(lost.request)
		require.NoError(t, err)
		_, err = hasty.Post(paused.url+lost.path, "application/json", bytes.NewReader(body))
		require.ErrorContains(t, err, "Client.Timeout")
		require.NoError(t, post(other.url+lost.path, lost.request, new(map[string]any)))
	}
	require.Equal(t, 100, allowed("m", resent))
	require.NoError(t, post(other.url+paths[0], call("m", released), new(map[string]any)))
	require.NoError(t, post(other.url+"/v1/sets/stop/members", map[string]any{"add": stopped}, new(map[string]any)))

	require.NoError(t, paused.cmd.Process.Signal(syscall.SIGCONT))
	testkit.Eventually(t, func() bool { return answered(paths[0]) && answered(paths[1]) && answered(paths[2]) },
		"%s", strings.Join(paths, " "))
	require.Zero(t, allowed("second", resent), "sent to twice")
	require.Equal(t, 100, allowed("second", released), "a send that nobody made")
	require.Zero(t, allowed("second", stopped), "unsubscribed")
}
