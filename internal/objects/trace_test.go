package objects_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/objects"
	"capper/internal/trace"
)

// TestTracesArePassedOnToS3 checks that only a call within a traced request sends a trace header to
// S3.
func TestTracesArePassedOnToS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	var parent, authorization atomic.Value
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parent.Store(r.Header.Get("traceparent"))
		authorization.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(s3.Close)
	place, err := objects.Open(t.Context(), "s3://bucket/prod", objects.S3Config{Endpoint: s3.URL})
	require.NoError(t, err)
	_, _ = place.List(t.Context(), "")
	require.Empty(t, parent.Load())

	const from = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx, span := trace.Begin(t.Context(), nil, http.Header{"Traceparent": {from}}, "id", time.Now())
	defer span.End()
	_, _ = place.List(ctx, "")
	require.Equal(t, from, parent.Load())
	require.NotContains(t, authorization.Load(), "traceparent", "a proxy may change it")
}
