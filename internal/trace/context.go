package trace

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
	otel "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// A node is a context.Context that belongs to a request or to one span of a request. Every request needs a node. A node
// contains the request id and the span, so that both need one allocation.
type node struct {
	context.Context
	id   string
	span Span
}

type nodeKey struct{}

// Value implements context.Context. For the key nodeKey, the method Value returns the node.
func (n *node) Value(key any) any {
	if key == (nodeKey{}) {
		return n
	}
	return n.Context.Value(key)
}

// The variable "none" is the node (context) of all contexts that do not belong to a request.
var none = &node{span: &noop.Span{}}

func of(ctx context.Context) *node {
	at, ok := ctx.(*node) // fast path
	if !ok {
		if at, ok = ctx.Value(nodeKey{}).(*node); !ok {
			return none
		}
	}
	return at
}

// Begin returns a context for a request. The context contains the request id and a trace span. If the tracer is nil or
// does not select the request, no exporter records the span. The service then passes the span of the caller on to other
// services. If ctx already belongs to a request, the new span is a child of the span in ctx.
func Begin(ctx context.Context, t *Tracer, h http.Header, id string, at time.Time) (context.Context, Span) {
	next := &node{Context: ctx, id: id}
	if from := of(ctx); from != none {
		next.span = child(from.span, "", at)
	} else {
		next.span = t.begin(incoming(h), at)
	}
	return next, next.span
}

// WithID returns a context for a request without a recorded span.
func WithID(ctx context.Context, id string) context.Context {
	return &node{ctx, id, none.span}
}

// RequestID returns the id of the request to which the context belongs. If the context belongs to no request, RequestID
// returns "".
func RequestID(ctx context.Context) string { return of(ctx).id }

// The function Of returns the span in the context. If the context contains no span, Of returns a span that records
// nothing.
func Of(ctx context.Context) Span { return of(ctx).span }

// Start begins a trace span that is a child of the span in the context. If the span in the context is not sampled,
// Start returns the same context and the same span.
func Start(ctx context.Context, name string) (context.Context, Span) {
	at := of(ctx)
	if !Sampled(at.span) {
		return ctx, at.span
	}
	next := &node{ctx, at.id, child(at.span, name, time.Now())}
	return next, next.span
}

// These constants are the headers of the W3C Trace Context, in the spelling of http.Header.
const (
	parentHeader = "Traceparent"
	stateHeader  = "Tracestate"
)

// maxState is the maximum number of bytes in a tracestate header that the service forwards.
const maxState = 512

// The function "incoming" returns the span of the caller from the headers of a request. The function ignores a
// malformed traceparent header, several traceparent headers, and a tracestate header without a traceparent header.
func incoming(h http.Header) Span {
	given := h[parentHeader]
	if len(given) != 1 {
		return none.span
	}
	parent, state := given[0], strings.Join(h[stateHeader], ",")
	if rest, ok := strings.CutPrefix(parent, "00-"); ok {
		// For version 00, the OpenTelemetry library accepts a trailing dash and rejects unknown flags, in contradiction
		// to the rules of the W3C. For version 01, the library ignores unknown flags.
		if len(rest) != len("4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") {
			return none.span
		}
		parent = "01-" + rest
	}
	if len(state) > maxState {
		state = ""
	}
	return otel.SpanFromContext(propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{"traceparent": parent, "tracestate": state}))
}

// The variable "unselected" is the span of all requests that the tracer has not selected. All requests without
// selection share one span, because the OpenTelemetry library takes 0.6 µs to create a span.
var unselected Span = &struct{ noop.Span }{}

// Outgoing sets the trace headers of a request to another service. If the span in the argument ctx is recorded, the
// headers contain this span. If the span in the argument ctx is not recorded, the headers contain the span of the
// caller. If the tracer did not select the request, the headers tell the other service to record no spans of the trace.
func Outgoing(ctx context.Context, h http.Header) {
	span := Of(ctx)
	on := span.SpanContext()
	if span == unselected {
		var ids otel.SpanContextConfig
		_, _ = rand.Read(ids.TraceID[:])
		_, _ = rand.Read(ids.SpanID[:])
		on = otel.NewSpanContext(ids)
	}
	if on.IsValid() {
		delete(h, stateHeader)
		propagation.TraceContext{}.Inject(otel.ContextWithSpanContext(ctx, on), propagation.HeaderCarrier(h))
	}
}
