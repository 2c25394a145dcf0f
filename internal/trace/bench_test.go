package trace_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"capper/internal/trace"
)

// BenchmarkNotTraced is all that a filter call does for its id and its spans where nothing is
// traced, over contexts as deep as a call's.
func BenchmarkNotTraced(b *testing.B) {
	h, out := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"x"}, "Content-Length": {"7"}},
		http.Header{}
	base := context.WithValue(context.WithValue(b.Context(), http.ServerContextKey, 1), http.LocalAddrContextKey, 2)
	b.ReportAllocs()
	at := time.Now()
	for b.Loop() {
		id := trace.IDOf(h, at)
		out[trace.IDHeader] = []string{id}
		ctx, span := trace.Begin(base, nil, h, id, at)
		trace.SetText(span, "capper.client", id)
		for range 3 { // decode, admit, write answer
			_, part := trace.Start(ctx, "part")
			trace.SetInt(part, "capper.users", 1)
			part.End()
		}
		for range 2 { // look up segments; judge and write, or the pipelines
			_, part := trace.Start(ctx, "part")
			trace.SetInt(part, "capper.users", 1)
			part.End()
		}
		_, part := trace.Start(ctx, "store filter")
		trace.SetInt(part, "capper.users", 1)
		part.End()
		if span.IsRecording() {
			trace.EndAt(span, at)
		}
	}
}

// BenchmarkRequestID is the part of it that an answer's X-Request-Id alone costs.
func BenchmarkRequestID(b *testing.B) {
	h, out := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"x"}, "Content-Length": {"7"}},
		http.Header{}
	b.ReportAllocs()
	at := time.Now()
	for b.Loop() {
		out[trace.IDHeader] = []string{trace.IDOf(h, at)}
	}
}
