//go:build storms

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// hasty is a caller who gives up a call after a second and repeats it at the other instance.
type hasty struct {
	t         *testing.T
	instances []*process
}

// post repeats a call until every user is decided, and returns the answer.
func (h *hasty) post(path string, request map[string]any, patience time.Duration) (answer map[string][]any) {
	h.t.Helper()
	body, err := json.Marshal(request)
	require.NoError(h.t, err)
	caller := http.Client{Timeout: patience}
	attempt := 0
	testkit.Eventually(h.t, func() bool {
		attempt++
		response, err := caller.Post(h.instances[attempt%2].url+path, "application/json", bytes.NewReader(body))
		if err != nil {
			return false
		}
		defer response.Body.Close()
		var raw map[string]json.RawMessage
		if response.StatusCode != http.StatusOK || json.NewDecoder(response.Body).Decode(&raw) != nil {
			return false
		}
		answer = map[string][]any{}
		for _, key := range []string{"allowed", "replayed", "unavailable", "denied"} {
			var users []any
			if raw[key] != nil && json.Unmarshal(raw[key], &users) == nil {
				answer[key] = users
			}
		}
		return len(answer["unavailable"]) == 0
	})
	return answer
}

// TestALateCallInAFailoverUndoesNothing kills masters while callers give calls up after a second and repeat them. What
// the callers do after the answer to a repeated call stays: sends that follow a release, and additions that follow a
// removal.
func TestALateCallInAFailoverUndoesNothing(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 2})
	dir := t.TempDir()
	publish(t, filepath.Join(dir, "segments"), "new=1-10")
	h := &hasty{t: t}
	for i := range 2 {
		file := filepath.Join(dir, fmt.Sprint("capper", i, ".yaml"))
		write(t, file, fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s}
segments: {source: %[1]s/segments, cache_dir: %[1]s/cache%[2]d, refresh: 1s}
store: {kind: redis, redis: {addrs: [%[3]s]}}
channels: {push: 1}
limits: {default: {daily: 1}}
suppress: {stop: all}
sets: {stop: {live: true}}
`, dir, i, strings.Join(c.Addrs, ", ")))
		h.instances = append(h.instances, serve(t, file))
	}
	const much = 10 * time.Second
	call := func(message string, users []int) map[string]any {
		return map[string]any{"message_id": message, "channel": "push", "user_ids": users}
	}
	for round, master := range c.Addrs[:2] {
		var sent, stopped []int
		for i := range 1500 {
			sent = append(sent, 1000+10_000*round+i)
			stopped = append(stopped, 5000+10_000*round+i)
		}
		message := fmt.Sprint("m", round)
		require.Len(t, h.post("/v1/filter", call(message, sent), much)["allowed"], len(sent))
		h.post("/v1/sets/stop/members", map[string]any{"add": stopped}, much)

		require.NoError(t, c.Kill(master))
		resent := make(chan []any)
		go func() {
			h.post("/v1/release", call(message, sent), time.Second)
			resent <- h.post("/v1/filter", call(message, sent), much)["allowed"]
		}()
		h.post("/v1/sets/stop/members", map[string]any{"remove": stopped}, time.Second)
		h.post("/v1/sets/stop/members", map[string]any{"add": stopped}, much)
		require.Len(t, <-resent, len(sent))
		late := time.NewTimer(6 * time.Second) // longer than call_timeout: every call that was given up has ended
		<-late.C
		require.Empty(t, h.post("/v1/filter", call("other", sent), much)["allowed"], "sent to twice")
		require.Empty(t, h.post("/v1/filter", call("other", stopped), much)["allowed"], "unsubscribed")
	}
}
