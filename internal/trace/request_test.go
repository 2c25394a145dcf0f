package trace_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/trace"
)

func TestRequestIDsAreTheCallersOrNew(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 9, 12, 44, 120e6, time.UTC)
	for _, id := range []string{"a", "!", "~", `"quoted"`, strings.Repeat("x", 128)} {
		require.Equal(t, id, trace.IDOf(http.Header{"X-Request-Id": {id}}, now))
	}
	seen := map[string]bool{}
	for _, given := range [][]string{nil, {}, {""}, {" "}, {"a b"}, {"a\nb"}, {"\x7f"}, {"é"}, {"a", "a"},
		{strings.Repeat("x", 129)}} {
		id := trace.IDOf(http.Header{"X-Request-Id": given}, now)
		require.Regexp(t, "^[0-9a-f]{24}$", id)
		require.False(t, seen[id])
		seen[id] = true
	}
	require.Less(t, trace.NewID(now), trace.NewID(now.Add(time.Millisecond)), "in the order of time")
}

func FuzzRequestID(f *testing.F) {
	f.Add("a")
	f.Add("a\r\nX-Evil: 1")
	f.Fuzz(func(t *testing.T, given string) {
		require.Regexp(t, "^[!-~]{1,128}$", trace.IDOf(http.Header{"X-Request-Id": {given}}, time.Now()))
	})
}

func TestLinesHaveWhatTheirContextBelongsTo(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	logger := slog.New(trace.Handler(trace.Handler(slog.NewJSONHandler(&text, nil)))) // told once
	line := func(ctx context.Context) (line map[string]any) {
		text.Reset()
		logger.With("a", 1).InfoContext(ctx, "m")
		require.NoError(t, json.Unmarshal([]byte(text.String()), &line))
		require.LessOrEqual(t, strings.Count(text.String(), "request_id"), 1)
		return line
	}
	require.NotContains(t, line(t.Context()), "request_id")
	ctx := trace.WithID(t.Context(), "mine")
	require.Equal(t, "mine", line(ctx)["request_id"])
	require.Equal(t, "mine", trace.RequestID(ctx))
	require.NotContains(t, line(ctx), "trace_id")
	below, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	require.Equal(t, "mine", line(below)["request_id"], "contexts below belong to it too")
	require.Empty(t, trace.RequestID(t.Context()))
}

// A context of a request ends when the one that it was made of does.
func TestContextsOfRequestsEnd(t *testing.T) {
	t.Parallel()
	type key struct{}
	parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, 7))
	ctx, _ := trace.Begin(parent, nil, http.Header{}, "id", time.Now())
	below, done := context.WithCancel(ctx)
	defer done()
	require.Equal(t, 7, below.Value(key{}))
	cancel()
	<-below.Done()
	require.ErrorIs(t, below.Err(), context.Canceled)
}

// No caller checks whether a request is traced.
func TestASpanThatIsNotRecordedCostsNothing(t *testing.T) {
	ctx := trace.WithID(t.Context(), "id")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, part := trace.Start(ctx, "p")
		trace.SetInt(part, "k", 1)
		trace.SetText(part, "k", "v")
		trace.Fail(part, "kind")
		part.End()
	}))
	none := trace.Of(t.Context())
	require.Equal(t, none, trace.StartClient(none, "p", time.Time{}, nil))
	trace.EndAt(none, time.Time{})
	trace.Event(none, "e", trace.Int("k", 1))
	require.False(t, trace.Sampled(none))
}
