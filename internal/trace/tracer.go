package trace

import (
	"context"
	"math/rand/v2"
	"time"

	otel "go.opentelemetry.io/otel/trace"
)

// The constant "scope" is the name of the OpenTelemetry instrumentation scope of all spans.
const scope = "capper"

// Tracer selects requests, and begins the spans of the selected requests. A nil Tracer selects no requests. A Tracer is
// safe for concurrent use.
type Tracer struct {
	spans otel.Tracer
	ratio float64
}

// NewTracer returns a tracer that begins spans with the provider, usually the provider of an exporter. The ratio is the
// fraction, from 0 to 1, of requests to select, among requests that the caller does not trace.
func NewTracer(provider otel.TracerProvider, ratio float64) *Tracer {
	return &Tracer{provider.Tracer(scope), ratio}
}

// The method "begin" begins a span for a request. The argument "from" is the span of the caller, and the argument "at"
// is the time at which the request arrived. If the tracer is nil, or if the caller traces the request but does not
// record its own span, the method returns the span of the caller. The method never blocks.
func (t *Tracer) begin(from Span, at time.Time) Span {
	if t == nil {
		return from
	}
	switch caller := from.SpanContext(); {
	case caller.IsValid() && !caller.IsSampled():
		return from
	case !caller.IsValid() && t.ratio < 1 && rand.Float64() >= t.ratio:
		return unselected
	}
	_, s := t.spans.Start(otel.ContextWithSpan(context.Background(), from), "request",
		otel.WithTimestamp(at), otel.WithSpanKind(otel.SpanKindServer))
	return s
}
