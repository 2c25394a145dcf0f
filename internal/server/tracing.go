// Package tracing says what the span of a request tells of it, by OpenTelemetry's semantic
// conventions for HTTP servers. Neither the path nor the query is told: they hold users
// and message ids. The route stands for them.
package server

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	"capper/internal/capping"
	"capper/internal/server/wire"
	"capper/internal/trace"
)

// unrouted is the route of requests that no route matched.
const unrouted = "other"

// untraced are routes that are asked all the time, by machines.
var untraced = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true, "/openapi.yaml": true}

// Begin is the context of the request with its id in it, and with a span where the tracer
// records it. t may be nil.
func beginSpan(t trace.Tracer, r *http.Request, route, id string, at time.Time) (context.Context, *trace.Span) {
	if untraced[route] {
		t = nil
	}
	ctx, span := trace.Begin(r.Context(), t, r.Header, id, at)
	if span != nil {
		describe(span, r, route, id)
	}
	return ctx, span
}

func nameOf(r *http.Request, route string) string {
	method := methodOf(r)
	if method == otherMethod {
		method = "HTTP"
	}
	if route == unrouted {
		return method
	}
	return method + " " + route
}

func describe(span *trace.Span, r *http.Request, route, id string) {
	span.Name(nameOf(r, route))
	span.Text("http.request.method", methodOf(r))
	if route != unrouted {
		span.Text("http.route", route)
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	span.Text("url.scheme", scheme)
	span.Text("network.protocol.version", strconv.Itoa(r.ProtoMajor)+"."+strconv.Itoa(r.ProtoMinor))
	span.Text("capper.request_id", id)
	if r.ContentLength > 0 {
		span.Int("http.request.body.size", int(r.ContentLength))
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		span.Text("server.address", local.IP.String()) // what callers call it by is theirs to say
		span.Int("server.port", local.Port)
	}
}

// otherMethod stands for methods that HTTP does not know, which are a caller's text.
const otherMethod = "_OTHER"

func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	}
	return otherMethod
}

// Refused says that the request was refused. Of these, only what is the service's own fault
// is one of the span.
func spanRefused(span *trace.Span, f *wire.Failure) {
	if span == nil {
		return
	}
	code := string(f.Code)
	span.Text("capper.error.code", code)
	if f.Code.Status() >= http.StatusInternalServerError {
		span.Fail(code)
	}
}

// Decided tells of the decisions of a call, in counts.
func spanDecided(span *trace.Span, d *capping.Decisions, sum *wire.Summary) {
	span.Int("capper.users.requested", sum.Requested)
	span.Int("capper.users.allowed", sum.Allowed)
	span.Int("capper.users.denied", sum.Denied)
	span.Int("capper.users.unavailable", sum.Unavailable)
	span.Text("capper.generation", d.Generation)
	span.Text("capper.config_version", d.Policy.Version)
}

// End says how the request was answered, and when.
func endSpan(span *trace.Span, status int, at time.Time) {
	if span != nil {
		span.Int("http.response.status_code", status)
		span.EndAt(at)
	}
}
