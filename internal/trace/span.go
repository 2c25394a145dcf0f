package trace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otel "go.opentelemetry.io/otel/trace"
)

// Span is the span type of the OpenTelemetry library (one part of a trace). If a span is not recorded, the methods of
// the span do nothing.
type Span = otel.Span

// Attribute is a key with a value that describes a span or an event of a span.
type Attribute = attribute.KeyValue

// Int returns a span attribute with a number as its value.
func Int(key string, n int) Attribute { return attribute.Int(key, n) }

// Text returns a span attribute with a text as its value.
func Text(key, text string) Attribute { return attribute.String(key, text) }

// SetInt sets a numeric attribute of a recorded span. If the span is not recorded, SetInt takes less time than the
// method SetAttributes.
func SetInt(s Span, key string, n int) {
	if s.IsRecording() {
		s.SetAttributes(Int(key, n))
	}
}

// SetText sets a text attribute of a recorded span. If the span is not recorded, SetText takes less time than the
// method SetAttributes.
func SetText(s Span, key, text string) {
	if s.IsRecording() {
		s.SetAttributes(Text(key, text))
	}
}

// Event adds an event at the current time to a recorded span.
func Event(s Span, name string, attributes ...Attribute) {
	s.AddEvent(name, otel.WithAttributes(attributes...))
}

// The function Fail marks a recorded span as failed, and notes the kind of the error.
func Fail(s Span, kind string) {
	SetText(s, "error.type", kind)
	s.SetStatus(codes.Error, "")
}

// EndAt ends a span at the given time.
func EndAt(s Span, at time.Time) { s.End(otel.WithTimestamp(at)) }

// Sampled reports whether this service records the span. The children of a sampled span are recorded even if the
// children begin after the end of the span.
func Sampled(s Span) bool {
	if s == none.span { // faster than the next lines, and the usual case without tracing
		return false
	}
	at := s.SpanContext()
	return at.IsSampled() && !at.IsRemote()
}

// StartClient begins a child span for a request to another service. The argument "links" contains the spans of other
// traces that also need this request. If the parent span is not sampled, StartClient returns the parent.
func StartClient(parent Span, name string, at time.Time, links []Span) Span {
	to := make([]otel.Link, len(links))
	for i, s := range links {
		to[i].SpanContext = s.SpanContext()
	}
	return child(parent, name, at, otel.WithSpanKind(otel.SpanKindClient), otel.WithLinks(to...))
}

func child(parent Span, name string, at time.Time, options ...otel.SpanStartOption) Span {
	if !Sampled(parent) {
		return parent
	}
	_, s := parent.TracerProvider().Tracer(scope).Start(otel.ContextWithSpan(context.Background(), parent), name,
		append(options, otel.WithTimestamp(at))...)
	return s
}
