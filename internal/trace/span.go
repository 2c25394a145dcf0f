package trace

import (
	"context"
	"net/http"
	"time"
)

// kind is the role of a span between services, such as server or client.
type kind int

// These are the kinds of spans.
const (
	internal kind = iota // a part of what this service does
	server               // an answer to somebody
	Client               // a question to somebody
)

// Tracer begins traces and continues the traces of callers. Tracer is safe for concurrent use.
type Tracer interface {
	// Begin begins the span of a request, which arrived at the given time from the caller's span. The span has no
	// name yet. Begin returns nil if the request is not recorded. It does not block.
	Begin(from Remote, at time.Time) *Span
}

// Recorder records one span. Recorder is safe for concurrent use and never blocks. Calls after End have no effect. A
// Recorder keeps references to keys and texts.
type Recorder interface {
	// Start begins a child span at the given time. links are other spans that the same work serves.
	Start(name string, kind kind, at time.Time, links []*Span) Recorder
	// Name changes the name of the span.
	Name(name string)
	Int(key string, n int64)
	Text(key, text string)
	// Event records an event at the current time. The attributes are pairs of a key and a text or number.
	Event(name string, attributes ...any)
	// Fail marks the span as failed, with the kind of the error.
	Fail(kind string)
	// End sets the end time of the span.
	End(at time.Time)
	// IDs returns the ids of the trace and of the span, in hexadecimal digits.
	IDs() (trace, span string)
	// Remote returns the span in the form that is sent to other services.
	Remote() Remote
}

// Span is a part of a trace that takes time. The methods of a nil Span do nothing. A Span is safe for concurrent use.
type Span struct{ recorder Recorder }

// newSpan returns the Span that the recorder records.
func newSpan(r Recorder) *Span { return &Span{r} }

// Recorder returns the recorder of the span. The span must not be nil.
func (s *Span) Recorder() Recorder { return s.recorder }

// Name changes the name of the span.
func (s *Span) Name(name string) {
	if s != nil {
		s.recorder.Name(name)
	}
}

// Int sets a numeric attribute of the span.
func (s *Span) Int(key string, n int) {
	if s != nil {
		s.recorder.Int(key, int64(n))
	}
}

// Text sets a text attribute of the span.
func (s *Span) Text(key, text string) {
	if s != nil {
		s.recorder.Text(key, text)
	}
}

// Event records an event at the current time. Callers with expensive arguments should first check whether the span is
// nil.
func (s *Span) Event(name string, attributes ...any) {
	if s != nil {
		s.recorder.Event(name, attributes...)
	}
}

// Fail marks the span as failed, with the kind of the error.
func (s *Span) Fail(kind string) {
	if s != nil {
		s.recorder.Fail(kind)
	}
}

// End ends the span now.
func (s *Span) End() {
	if s != nil {
		s.recorder.End(time.Now())
	}
}

// EndAt ends the span at the given time.
func (s *Span) EndAt(at time.Time) {
	if s != nil {
		s.recorder.End(at)
	}
}

// StartAt begins a child span at the given time. links are spans of other traces that the same work serves.
func (s *Span) StartAt(name string, kind kind, at time.Time, links []*Span) *Span {
	if s == nil {
		return nil
	}
	return &Span{s.recorder.Start(name, kind, at, links)}
}

// TraceID returns the id of the trace, or "" for a nil Span.
func (s *Span) TraceID() string {
	if s == nil {
		return ""
	}
	id, _ := s.recorder.IDs()
	return id
}

// node is a context that belongs to a request or to a part of a request.
type node struct {
	context.Context
	id        string
	span      *Span
	remote    Remote // that the request came with
	unsampled bool   // the service records other requests
}

type nodeKey struct{}

// Value implements context.Context. A node returns itself as its value, which saves an allocation for each request.
func (n *node) Value(key any) any {
	if key == (nodeKey{}) {
		return n
	}
	return n.Context.Value(key)
}

func of(ctx context.Context) *node {
	at, _ := ctx.Value(nodeKey{}).(*node)
	return at
}

// Begin returns the context of a request, with the request id. If the tracer records the request, the context also
// has a span without a name. The tracer may be nil. If ctx already belongs to a span, the request becomes a part of
// that span.
func Begin(ctx context.Context, t Tracer, h http.Header, id string, at time.Time) (context.Context, *Span) {
	next := &node{Context: ctx, id: id}
	if from := of(ctx); from != nil {
		next.remote, next.unsampled, next.span = from.remote, from.unsampled, from.span.StartAt("", internal, at, nil)
	} else {
		next.remote, next.unsampled = Incoming(h), t != nil
		if t != nil {
			next.span = t.Begin(next.remote, at)
		}
	}
	return next, next.span
}

// WithID returns the context of a request that is not recorded.
func WithID(ctx context.Context, id string) context.Context {
	return &node{Context: ctx, id: id}
}

// RequestID returns the id of the context's request, or "" if the context has none.
func RequestID(ctx context.Context) string {
	if at := of(ctx); at != nil {
		return at.id
	}
	return ""
}

// Of returns the span of the context, or nil if the context has none.
func Of(ctx context.Context) *Span {
	if at := of(ctx); at != nil {
		return at.span
	}
	return nil
}

// Start begins a child of the context's span. If the context has no span, Start returns the context and nil.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	at := of(ctx)
	if at == nil || at.span == nil {
		return ctx, nil
	}
	next := *at
	next.Context, next.span = ctx, at.span.StartAt(name, internal, time.Now(), nil)
	return &next, next.span
}

// Part begins a child span.
func (s *Span) Part(name string) *Span {
	if s == nil {
		return nil
	}
	return s.StartAt(name, internal, time.Now(), nil)
}
