package server_test

import (
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	"capper/internal/server"
	"capper/internal/trace"
)

// BenchmarkUntracedCall measures BenchmarkCall with tracing configured, for calls that are not sampled.
func BenchmarkUntracedCall(b *testing.B) {
	tracer := trace.NewTracer(noop.NewTracerProvider(), 0)
	benchmarkCalls(b, func(cfg *server.Config) { cfg.Tracer = tracer })
}
