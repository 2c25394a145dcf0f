//go:build storms

package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// Four sends in seconds under a maximum of two a week, by a mistaken reload of
// one instance: the other's sends are counted all the same.
func TestAMistakenReloadErasesNothingThatTheFleetCounts(t *testing.T) {
	t.Parallel()
	redis := testcluster.Single(t, testcluster.Options{}).Addrs[0]
	const right, wrong = "{default: {daily: 9, weekly: 2}}", "{default: [{name: blink, max: 9, window: 1s}]}"
	file := onServer(t, redis, "{push: 1}", right)
	first, second := serve(t, file), serve(t, onServer(t, redis, "{push: 1}", right))
	reload := func(limits string) {
		before := first.get("/v1/status")["config_version"]
		write(t, file, redisConfig(filepath.Dir(file), redis, "{push: 1}", limits, true))
		testkit.Eventually(t, func() bool { return first.get("/v1/status")["config_version"] != before })
	}
	ask := func(p *process, message string) int {
		got, err := p.filter(message, 7)
		require.NoError(t, err)
		require.Empty(t, got.Unavailable)
		return len(got.Allowed)
	}
	require.Equal(t, 2, ask(first, "1")+ask(second, "2")+ask(first, "3"))
	reload(wrong)
	testkit.Eventually(t, func() bool {
		return first.get("/v1/users/7")["limits"].([]any)[0].(map[string]any)["used"] == 0.0
	}, "the sends are older than the mistaken limit looks back")
	require.Equal(t, 1, ask(first, "4"), "its own limits decide")
	status := fmt.Sprint(first.get("/v1/status"))
	require.Contains(t, status, "a reload shortened the longest window")
	require.Contains(
		t,
		status,
		"sends are kept for 168h0m0.5s, although the limits of this instance look back only 1.5s",
	)
	require.Equal(t, 0, ask(second, "5"))
	reload(right)
	require.Equal(t, 0, ask(first, "6"))
	sends := first.get("/v1/users/7")["sends"].([]any)
	require.Len(t, sends, 3, "all are kept")
}
