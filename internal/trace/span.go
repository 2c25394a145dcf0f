package trace

import (
	"context"
	"net/http"
	"time"
)

// kind is what a span stands for, between services.
type kind int

// The kinds of spans.
const (
	internal kind = iota // a part of what this service does
	server               // an answer to somebody
	Client               // a question to somebody
)

// Tracer begins traces, and goes on with those of callers. It is safe for concurrent use.
type Tracer interface {
	// Begin begins the span of a request, without a name yet, that came at the time from a
	// caller with that span. Nil: it is not recorded. It does not block.
	Begin(from Remote, at time.Time) *Span
}

// Recorder records one span. It is safe for concurrent use; nothing blocks, and nothing
// counts after End. Keys and texts are kept.
type Recorder interface {
	// Start records a part of the span that began at the time. links are others that it was done for.
	Start(name string, kind kind, at time.Time, links []*Span) Recorder
	// Name names the span anew.
	Name(name string)
	Int(key string, n int64)
	Text(key, text string)
	// Event records that something happened now; texts and numbers alternate with their keys.
	Event(name string, attributes ...any)
	// Fail says that what the span stands for failed, in a way of that kind.
	Fail(kind string)
	// End says when it ended.
	End(at time.Time)
	// IDs are those of the trace and the span, in hexadecimal digits.
	IDs() (trace, span string)
	// Remote is how others are told of the span.
	Remote() Remote
}

// Span is a part of a trace that takes time. Nil is none. It is safe for concurrent use.
type Span struct{ recorder Recorder }

// newSpan is what a recorder records.
func newSpan(r Recorder) *Span { return &Span{r} }

// Recorder is the one behind the span, which must not be nil.
func (s *Span) Recorder() Recorder { return s.recorder }

// Name names the span anew.
func (s *Span) Name(name string) {
	if s != nil {
		s.recorder.Name(name)
	}
}

// Int sets an attribute.
func (s *Span) Int(key string, n int) {
	if s != nil {
		s.recorder.Int(key, int64(n))
	}
}

// Text sets an attribute.
func (s *Span) Text(key, text string) {
	if s != nil {
		s.recorder.Text(key, text)
	}
}

// Event records that something happened now. Callers whose arguments cost something ask for
// nil themselves.
func (s *Span) Event(name string, attributes ...any) {
	if s != nil {
		s.recorder.Event(name, attributes...)
	}
}

// Fail says that what the span stands for failed, in a way of that kind.
func (s *Span) Fail(kind string) {
	if s != nil {
		s.recorder.Fail(kind)
	}
}

// End says that it is over.
func (s *Span) End() {
	if s != nil {
		s.recorder.End(time.Now())
	}
}

// EndAt says when it was over.
func (s *Span) EndAt(at time.Time) {
	if s != nil {
		s.recorder.End(at)
	}
}

// StartAt begins a part of the span at the time. links are spans of other traces that the
// same work is done for.
func (s *Span) StartAt(name string, kind kind, at time.Time, links []*Span) *Span {
	if s == nil {
		return nil
	}
	return &Span{s.recorder.Start(name, kind, at, links)}
}

// TraceID is the id of the trace; "" for nil.
func (s *Span) TraceID() string {
	if s == nil {
		return ""
	}
	id, _ := s.recorder.IDs()
	return id
}

// node is a context that belongs to a request, or to a part of one.
type node struct {
	context.Context
	id        string
	span      *Span
	remote    Remote // that the request came with
	unsampled bool   // the service records other requests
}

type nodeKey struct{}

// Value implements context.Context. A node is its own value, which spares each request one.
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

// Begin is the context of a request: with its id, and with a span that has no name yet where
// the tracer records it. Tracer may be nil. A context that belongs to a span makes the
// request a part of it.
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

// WithID is the context of a request of which nothing is recorded.
func WithID(ctx context.Context, id string) context.Context {
	return &node{Context: ctx, id: id}
}

// RequestID is the id of the request that the context belongs to; "": none.
func RequestID(ctx context.Context) string {
	if at := of(ctx); at != nil {
		return at.id
	}
	return ""
}

// Of is the span that the context belongs to; nil: none.
func Of(ctx context.Context) *Span {
	if at := of(ctx); at != nil {
		return at.span
	}
	return nil
}

// Start begins a part of the span that the context belongs to. Without one it returns the
// context, and nil.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	at := of(ctx)
	if at == nil || at.span == nil {
		return ctx, nil
	}
	next := *at
	next.Context, next.span = ctx, at.span.StartAt(name, internal, time.Now(), nil)
	return &next, next.span
}

// Part begins a part of the span.
func (s *Span) Part(name string) *Span {
	if s == nil {
		return nil
	}
	return s.StartAt(name, internal, time.Now(), nil)
}
