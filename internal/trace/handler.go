package trace

import (
	"context"
	"log/slog"
)

// handler adds to a record what its context belongs to.
type handler struct{ slog.Handler }

// Handler is next, for which each record whose context belongs to a request has its
// request_id, and where that is traced trace_id and span_id. The handler of a Handler is
// that itself.
func Handler(next slog.Handler) slog.Handler {
	if known, ok := next.(handler); ok {
		return known
	}
	return handler{next}
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if at := of(ctx); at != nil {
		r = r.Clone()
		r.AddAttrs(slog.String("request_id", at.id))
		if at.span != nil {
			trace, span := at.span.recorder.IDs()
			r.AddAttrs(slog.String("trace_id", trace), slog.String("span_id", span))
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
