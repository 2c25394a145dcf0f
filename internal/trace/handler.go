package trace

import (
	"context"
	"log/slog"
)

// The type "handler" adds the ids of the context's request to each log record.
type handler struct{ slog.Handler }

// The function Handler wraps a slog.Handler. The returned log handler adds "request_id" to each log record whose
// context belongs to a request. If the request is traced, the log handler also adds "trace_id" and "span_id". If "next"
// is already a log handler of this kind, Handler returns "next" unchanged.
func Handler(next slog.Handler) slog.Handler {
	if known, ok := next.(handler); ok {
		return known
	}
	return handler{next}
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if at := of(ctx); at != none {
		r = r.Clone()
		r.AddAttrs(slog.String("request_id", at.id))
		if Sampled(at.span) {
			ids := at.span.SpanContext()
			r.AddAttrs(slog.String("trace_id", ids.TraceID().String()), slog.String("span_id", ids.SpanID().String()))
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }
