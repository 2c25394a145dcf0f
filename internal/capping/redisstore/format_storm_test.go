//go:build storms

package redisstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/testkit"
)

// A keyspace that the last program of format 1 wrote moves to the newest format under load, after the last instance
// of format 1 has left.
func TestFormat1IsUpgradedWhileServing(t *testing.T) {
	t.Parallel()
	locator := openShared(t, nil)
	start := time.Now()
	recorded := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	config := locator.config
	config.Namespace = namespace()
	config.Clock = func() time.Time { return recorded.Add(4*time.Hour + time.Since(start)) }
	restore(t, locator, config.Namespace, "testdata/format-1.txt")
	a, b := openFormats(t, config, script.Known), openFormats(t, config, script.Known)
	logs := logsOfDump(t, "testdata/format-1.txt")
	require.Equal(t, logs, readLogs(t, a))

	st := newStorm(0, a, b)
	defer st.end()
	st.patience, st.before = 10*time.Second, logs
	st.begin(1)
	served := func(calls int) {
		t.Helper()
		st.mu.Lock()
		begun := st.tally.calls
		st.mu.Unlock()
		require.Eventually(t, func() bool {
			st.mu.Lock()
			defer st.mu.Unlock()
			return st.tally.calls >= begun+calls
		}, 5*time.Minute, 5*time.Millisecond)
	}
	client, key := records(t, a), a.marker.Key
	marked := client.Get(t.Context(), key).Val()
	if time.Since(start) < 20*time.Second { // a busy machine takes longer, and the old instance counts for 30 s
		require.Equal(t, "capper log 1 "+space, marked, "the old instance is still there")
	}
	served(100)
	for id, text := range client.HGetAll(t.Context(), key+":instances").Val() {
		if !strings.Contains(text, "formats") {
			require.NoError(t, client.HDel(t.Context(), key+":instances", id).Err()) // it leaves
		}
	}
	for _, s := range []*Store{a, b} {
		s.fleet.beatSoon()
		testkit.Eventually(t, func() bool { return s.fleet.seen.Load().format == script.Known.Newest() })
	}
	served(200)
	st.end()
	st.settle(t)
	require.Zero(t, st.tally.spoilt, "nobody was unavailable: %v", st.tally.lastError)
	require.Equal(t, violations{}, st.judge(st.logsOf(t, a)))
	require.Equal(t, a.marker.Text, client.Get(t.Context(), key).Val())
	for user, log := range logs {
		now, err := a.Log(context.Background(), user)
		require.NoError(t, err)
		require.Contains(t, string(now), string(log), "user %d", user)
	}
	messages, err := b.Messages(t.Context(), []capping.Token{capping.Message{ID: "offer"}.Token(),
		capping.Message{Namespace: "growth", ID: "newsletter"}.Token()})
	require.NoError(t, err)
	require.Len(t, messages, 2)
}

// logsOfDump returns the logs in a dump.
func logsOfDump(t *testing.T, dump string) map[capping.UserID]capping.Log {
	text, err := os.ReadFile(dump)
	require.NoError(t, err)
	logs := map[capping.UserID]capping.Log{}
	for line := range strings.Lines(string(text)) {
		var tag, encoded string
		var field capping.UserID
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "hset fc:{")
		if !ok {
			continue
		}
		tag, rest, _ = strings.Cut(rest, "}:")
		name, rest, _ := strings.Cut(rest, " ")
		if n, err := fmt.Sscanf(rest, "\"%d\" %s", &field, &encoded); n != 2 || err != nil || tag == script.FormatTag {
			continue
		}
		bucket, err := strconv.ParseUint(name, 36, 32)
		require.NoError(t, err)
		log, err := hex.DecodeString(encoded)
		require.NoError(t, err)
		logs[capping.UserID(uint32(bucket)*script.Standard.BucketSize)+field] = log
	}
	require.Len(t, logs, 630)
	return logs
}
