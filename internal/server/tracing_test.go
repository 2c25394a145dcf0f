package server_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/server"
	"capper/internal/trace"
)

// BenchmarkUntracedCall measures BenchmarkCall with tracing configured, for calls that are not sampled.
func BenchmarkUntracedCall(b *testing.B) {
	tracer, err := trace.OpenExporter(b.Context(), trace.Config{Endpoint: "http://127.0.0.1:9", Ratio: 0})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, tracer.Close(context.Background())) })
	benchmarkCalls(b, func(cfg *server.Config) { cfg.Tracer = tracer })
}
