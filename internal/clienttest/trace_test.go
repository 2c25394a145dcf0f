package clienttest

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"capper/client"
)

type requestID struct{}

// traced gives requests what the context knows, as an engine with OpenTelemetry's SDK would.
func traced(ctx context.Context, header http.Header) {
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	if id, ok := ctx.Value(requestID{}).(string); ok {
		header.Set("X-Request-Id", id)
	}
	header.Set("Authorization", "Bearer of-elsewhere") // which stays the client's
}

// Every attempt of every call is part of its caller's trace, and has its id.
func TestCallsArePartOfTheirCallersTrace(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []http.Header
	url := newCapper(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen = append(seen, r.Header.Clone())
			first := len(seen) == 1
			mu.Unlock()
			if first {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	c, err := client.New(client.Config{URL: url, Key: "a.b", Header: traced, BatchIDs: 2, MinBackoff: time.Millisecond})
	require.NoError(t, err)
	state, err := trace.ParseTraceState("rojo=1")
	require.NoError(t, err)
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{0x4b, 15: 1}, SpanID: trace.SpanID{0xf0, 7: 1}, TraceFlags: trace.FlagsSampled,
		TraceState: state,
	}))
	ctx = context.WithValue(ctx, requestID{}, "blast-7")

	request := &client.FilterRequest{MessageID: "m", Channel: "push", Users: []uint32{1, 2, 3, 4, 5}}
	require.NoError(t, c.FilterAll(ctx, request, func(*client.FilterRequest, *client.FilterResult) error {
		return nil
	}))
	require.Len(t, seen, 1+3, "an attempt that failed, and three batches")
	_, err = c.Filter(ctx, &client.FilterRequest{MessageID: "m", Channel: "post", Users: []uint32{1}})
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "blast-7", refused.RequestID)
	require.ErrorContains(t, err, "(request blast-7)")
	for _, header := range seen {
		require.Equal(t, "00-4b000000000000000000000000000001-f000000000000001-01", header.Get("Traceparent"))
		require.Equal(t, "rojo=1", header.Get("Tracestate"))
		require.Equal(t, "blast-7", header.Get("X-Request-Id"))
		require.Equal(t, "Bearer a.b", header.Get("Authorization"))
		require.Equal(t, "application/json", header.Get("Content-Type"))
	}

	seen = seen[:1]
	_, err = c.Filter(t.Context(), &client.FilterRequest{MessageID: "m", Channel: "post", Users: []uint32{1}})
	require.ErrorAs(t, err, &refused)
	require.Regexp(t, "^[0-9a-f]{24}$", refused.RequestID, "which the service made")
	require.Empty(t, seen[1].Get("Traceparent"))
}
