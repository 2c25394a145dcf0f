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
)

// A keyspace as the last program of format 1 left it, one of whose instances
// is still there, goes to the newest format while new ones serve.
func TestFormat1IsUpgradedWhileServing(t *testing.T) {
	t.Parallel()
	upgradeWhileServing(t, script.Known, func(*Store, map[capping.UserID]capping.Log) {})
}

// compact is a format whose logs hold nothing from before the instant: a change
// of every log, to show that steps which rewrite are taken whole.
func compact(version int, before capping.Instant) script.Format {
	return script.Format{Version: version, Least: version, Rewrite: fmt.Sprintf(`
	local first = 1
	while first <= #log and struct.unpack('>I5', log, first) < %d do first = first + %d end
	return string.sub(log, first)`, before, capping.EntrySize)}
}

// A format whose logs differ: all of them are rewritten while instances serve,
// those of users whom nobody asks about too.
func TestLogsAreRewrittenWhileServing(t *testing.T) {
	t.Parallel()
	bound := capping.InstantOf(time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC))
	old := capping.Log(nil).Record(nil, capping.Entry{At: bound - 1, Channel: 1, Token: capping.TokenOf("old")}, 0)
	formats := append(script.Known[:len(script.Known):len(script.Known)], compact(3, bound))
	var idle []capping.UserID
	for i := range 500 {
		idle = append(idle, capping.UserID(12_000_000+i*7_919))
	}
	s, logs := upgradeWhileServing(t, formats, func(s *Store, logs map[capping.UserID]capping.Log) {
		for _, user := range idle {
			put(t, s, user, old)
		}
		for user, log := range logs {
			put(t, s, user, append(old[:len(old):len(old)], log...))
		}
	})
	require.Eventually(t, func() bool {
		p, err := s.rewriter.progress(t.Context())
		return err == nil && p.version == 3 && p.row == s.keyspace.Rows(s.rewriter.last)
	}, time.Minute, 5*time.Millisecond)
	require.Empty(t, s.rewriter.warning())
	after := readLogs(t, s)
	for user, log := range after {
		require.GreaterOrEqual(t, log.At(0), bound, "user %d", user)
	}
	for user, log := range logs {
		require.Equal(t, log, after[user][:len(log)], "user %d", user)
	}
	for _, user := range idle {
		require.NotContains(t, after, user)
	}

	// A key of another type, and rewriting again, do no harm.
	client := owner(t, s, 1)
	_, key, _ := s.key(1)
	require.NoError(t, client.Del(t.Context(), key).Err())
	require.NoError(t, client.Set(t.Context(), key, "x", time.Hour).Err())
	require.NoError(t, s.rewriter.buckets(t.Context(), s.rewriter.scripts[3], 0, 40))
	require.Equal(t, "x", client.Get(t.Context(), key).Val())
	require.NoError(t, client.Del(t.Context(), key).Err())
	for user, log := range readLogs(t, s) {
		require.Equal(t, after[user], log, "user %d", user)
	}
}

// upgradeWhileServing lets two instances of a program that knows the formats
// serve a keyspace of format 1 until it is in the newest one.
func upgradeWhileServing(t *testing.T, formats script.Formats, prepare func(*Store, map[capping.UserID]capping.Log)) (
	*Store, map[capping.UserID]capping.Log) {
	locator := openShared(t, nil)
	start := time.Now()
	recorded := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	config := locator.config
	config.Namespace = namespace()
	config.lastUser, config.rewriteAfter = 17_000_000, time.Millisecond
	config.Clock = func() time.Time { return recorded.Add(4*time.Hour + time.Since(start)) }
	restore(t, locator, config.Namespace, "testdata/format-1.txt")
	a, b := openFormats(t, config, formats), openFormats(t, config, formats)
	logs := logsOfDump(t, "testdata/format-1.txt")
	require.Equal(t, logs, readLogs(t, a))
	prepare(a, logs)

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
		}, time.Minute, 5*time.Millisecond)
	}
	served(100)
	client, key := records(t, a), a.marker.Key
	require.Equal(t, "capper log 1 "+space, client.Get(t.Context(), key).Val(), "the old instance is still there")
	for id, text := range client.HGetAll(t.Context(), key+":instances").Val() {
		if !strings.Contains(text, "formats") {
			require.NoError(t, client.HDel(t.Context(), key+":instances", id).Err()) // it leaves
		}
	}
	for _, s := range []*Store{a, b} {
		s.fleet.beatSoon()
		require.Eventually(t, func() bool { return s.fleet.seen.Load().format == formats.Newest() }, time.Minute,
			5*time.Millisecond)
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
	messages, err := b.Messages(t.Context(), []capping.Token{capping.TokenOf("offer"),
		capping.Message{Namespace: "growth", ID: "newsletter"}.Token()})
	require.NoError(t, err)
	require.Len(t, messages, 2)
	return a, logs
}

// logsOfDump are the logs in a dump.
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
		logs[capping.UserID(bucket)*script.Standard.BucketSize+field] = log
	}
	require.Len(t, logs, 630)
	return logs
}
