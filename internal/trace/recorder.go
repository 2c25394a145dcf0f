package trace

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	otel "go.opentelemetry.io/otel/trace"
)

// recorder implements Recorder with a span of the OpenTelemetry library.
type recorder struct {
	ctx    context.Context // context of the parts
	span   otel.Span
	tracer otel.Tracer
}

var _ Recorder = (*recorder)(nil)

var kinds = map[kind]otel.SpanKind{
	internal: otel.SpanKindInternal, server: otel.SpanKindServer, Client: otel.SpanKindClient,
}

// Start implements trace.Recorder.
func (r *recorder) Start(name string, kind kind, at time.Time, links []*Span) Recorder {
	ctx, span := r.tracer.Start(r.ctx, name, otel.WithTimestamp(at), otel.WithSpanKind(kinds[kind]),
		otel.WithLinks(linksTo(links)...))
	return &recorder{ctx, span, r.tracer}
}

func linksTo(spans []*Span) (links []otel.Link) {
	for _, s := range spans {
		if to, ok := s.Recorder().(*recorder); ok {
			links = append(links, otel.Link{SpanContext: to.span.SpanContext()})
		}
	}
	return links
}

// Name implements trace.Recorder.
func (r *recorder) Name(name string) { r.span.SetName(name) }

// Int implements trace.Recorder.
func (r *recorder) Int(key string, n int64) { r.span.SetAttributes(attribute.Int64(key, n)) }

// Text implements trace.Recorder.
func (r *recorder) Text(key, text string) { r.span.SetAttributes(attribute.String(key, text)) }

// Event implements trace.Recorder.
func (r *recorder) Event(name string, attributes ...any) {
	var told []attribute.KeyValue
	for i := 0; i+1 < len(attributes); i += 2 {
		key, _ := attributes[i].(string)
		switch value := attributes[i+1].(type) {
		case string:
			told = append(told, attribute.String(key, value))
		case int:
			told = append(told, attribute.Int(key, value))
		}
	}
	r.span.AddEvent(name, otel.WithAttributes(told...))
}

// Fail implements trace.Recorder.
func (r *recorder) Fail(kind string) {
	r.span.SetAttributes(attribute.String("error.type", kind))
	r.span.SetStatus(codes.Error, "")
}

// End implements trace.Recorder.
func (r *recorder) End(at time.Time) { r.span.End(otel.WithTimestamp(at)) }

// IDs implements trace.Recorder.
func (r *recorder) IDs() (traceID, spanID string) {
	at := r.span.SpanContext()
	return at.TraceID().String(), at.SpanID().String()
}

// Remote implements trace.Recorder.
func (r *recorder) Remote() Remote {
	carrier := propagation.HeaderCarrier(http.Header{})
	propagation.TraceContext{}.Inject(r.ctx, carrier)
	return Remote{Parent: carrier.Get(parentHeader), State: carrier.Get(stateHeader)}
}
