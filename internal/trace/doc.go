// Package trace marks all work for a request with the request id and, if the request is traced, with a span. The
// response to a request, and every log line about the request, contain the request id. Package trace begins spans with
// the API of the OpenTelemetry library. Package otlp below it contains the exporter, which records the spans and sends
// them to a collector. No other packages use the OpenTelemetry library.
//
// # Vocabulary
//
// A request id is an id that the caller chose for a request, or an id that the service generated. A trace describes the
// work that all participating services do for one request. A span is one part of a trace, with a beginning, an end,
// attributes and a parent span. The type Span is the span type of the OpenTelemetry library. Every request has a span.
// If a request is not recorded, the methods of the request's span do nothing, and take almost no time. Callers of
// package trace therefore never check whether a request is traced.
//
// # Propagation
//
// Within the process, the context of a call contains the call's span (Begin, Of, Start). Between services, the W3C
// headers traceparent and tracestate carry the span. Begin reads these headers, and Outgoing writes them, both with the
// OpenTelemetry library. The log handler from the function Handler adds the request id and the trace id to log records.
//
// # Private data
//
// A span never contains user ids, but may contain numbers of users. A span contains the kind of an error, and never the
// error text, because an error text may contain user ids. The log contains the error text, together with the ids of the
// request and the trace. A span contains message ids only if the configuration permits message ids in spans.
//
// # Selection
//
// If the caller traces a request, the caller decides whether the service records the request. If the caller does not
// trace a request, the service records the request with the configured probability.
//
// # Own code beside the library
//
// The OpenTelemetry library alone would break some promises in capper's documentation:
//   - Calls without a recorded span must need almost no additional time (docs/benchmarks.md). One allocation therefore
//     contains the request id and the span of a context, and SetInt and SetText create attributes only for recorded
//     spans. Begin selects the requests to record, because the sampler of the OpenTelemetry library needs 0.6 µs.
//   - According to the rules of the W3C, a service ignores unknown flags in traceparent, and joins repeated tracestate
//     headers. The OpenTelemetry library ends the trace at unknown flags, and reads only the first tracestate header.
package trace
