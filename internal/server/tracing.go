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

// The constant "unrouted" is the value of the label "route" for requests that no route matched.
const unrouted = "other"

// The variable "untraced" lists the routes whose requests are never traced, because monitoring requests them
// continually.
var untraced = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true, "/openapi.yaml": true}

// beginSpan returns the request's context with the request id, and with a span when the tracer selects the request.
// The trace span of a request follows the OpenTelemetry conventions for HTTP servers. The trace span of a request
// contains the route instead of the path and the query, because path and query contain user ids and message ids. A
// nil tracer t selects no request.
func beginSpan(t *trace.Tracer, r *http.Request, route, id string, at time.Time) (context.Context, trace.Span) {
	if untraced[route] {
		t = nil
	}
	ctx, span := trace.Begin(r.Context(), t, r.Header, id, at)
	if span.IsRecording() {
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

func describe(span trace.Span, r *http.Request, route, id string) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	span.SetName(nameOf(r, route))
	span.SetAttributes(trace.Text("http.request.method", methodOf(r)), trace.Text("url.scheme", scheme),
		trace.Text("network.protocol.version", strconv.Itoa(r.ProtoMajor)+"."+strconv.Itoa(r.ProtoMinor)),
		trace.Text("capper.request_id", id))
	if route != unrouted {
		span.SetAttributes(trace.Text("http.route", route))
	}
	if r.ContentLength > 0 {
		span.SetAttributes(trace.Int("http.request.body.size", int(r.ContentLength)))
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		// The host name in the request is not recorded, because the caller can choose any text.
		span.SetAttributes(trace.Text("server.address", local.IP.String()), trace.Int("server.port", local.Port))
	}
}

// otherMethod replaces, in spans, an HTTP method that the standard does not define, because the caller can choose any
// text.
const otherMethod = "_OTHER"

func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return r.Method
	}
	return otherMethod
}

// spanRefused notes on the trace span that the server refused the request. The trace span of a refused request gets
// an error status only if the service itself failed.
func spanRefused(span trace.Span, f *wire.Failure) {
	trace.SetText(span, "capper.error.code", string(f.Code))
	if f.Code.Status() >= http.StatusInternalServerError {
		trace.Fail(span, string(f.Code))
	}
}

// spanDecided notes on the trace span the numbers of users who were allowed, denied, and left without a decision. The
// function spanDecided also notes the versions of segments and configuration.
func spanDecided(span trace.Span, d *capping.Decisions, sum *wire.Summary) {
	span.SetAttributes(trace.Int("capper.users.requested", sum.Requested),
		trace.Int("capper.users.allowed", sum.Allowed), trace.Int("capper.users.denied", sum.Denied),
		trace.Int("capper.users.unavailable", sum.Unavailable), trace.Text("capper.generation", d.Generation),
		trace.Text("capper.config_version", d.Policy.Version))
}

// endSpan notes the HTTP status of the response on the trace span and ends the span.
func endSpan(span trace.Span, status int, at time.Time) {
	if span.IsRecording() {
		span.SetAttributes(trace.Int("http.response.status_code", status))
		trace.EndAt(span, at)
	}
}
