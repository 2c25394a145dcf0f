// Package trace marks all work for a request with the request id and, if the request is traced, with a span. The
// response to a request and every log line about it contain the request id. Package trace records spans with the
// OpenTelemetry library, and sends them to a collector by OTLP over HTTP. No other package uses the OpenTelemetry
// library.
//
// # Vocabulary
//
// A request id is an id that the caller chose for a request, or an id that the service generated. A trace is the work
// for one request in all services that take part. A span is one part of a trace, with a beginning, an end, attributes
// and a parent span. The type Span is the span type of the OpenTelemetry library. Every request has a span. If a
// request is not recorded, the methods of its span do nothing and take almost no time. Callers of package trace never
// check whether a request is traced, because an unrecorded span costs almost nothing.
//
// # Propagation
//
// Within the process, the context of a call contains the call's span (Begin, Of, Start). Between services, the HTTP
// headers traceparent and tracestate of the W3C carry the span. Begin reads the trace headers and Outgoing writes
// them, both with the OpenTelemetry library. For operators, the log handler that Handler returns adds the request id
// and the trace id to log records.
//
// # Private data
//
// A span never contains user ids, but it contains numbers of users. A span never contains error texts, because these
// may contain user ids; it contains only the kind of an error. The log contains the error text, together with the ids
// of the request and the trace. A span contains message ids only if the configuration permits message ids in spans.
//
// # Export
//
// If the caller traces a request, the caller decides whether the request is recorded. If the caller does not trace a
// request, the service records the request with the configured probability.
//
// Spans that have ended wait in the batch processor of the OpenTelemetry library, whose queue has a maximum length.
// One goroutine sends the ended spans in batches. Ending a span never blocks. If the collector is unavailable, slow
// or faulty, package trace drops spans and counts them. If spans are dropped, a log line reports the loss, at most
// once a minute.
//
// # Own code beside the library
//
// The OpenTelemetry library alone would break some promises in capper's documentation:
//   - Calls that are not recorded must need almost no additional time (docs/benchmarks.md). To save time, one
//     allocation contains the request id and the span of a context, and SetInt and SetText create attributes only for
//     recorded spans. Begin itself selects the requests to record, because the sampler of the OpenTelemetry library
//     needs 0.6 µs.
//   - Dropped spans must be counted and logged. The OpenTelemetry library drops spans silently, and prints errors of
//     the collector.
//   - The rules of the W3C say that unknown flags in traceparent are ignored, and that repeated tracestate headers are
//     joined. The OpenTelemetry library ends the trace when it finds unknown flags, and reads only the first tracestate
//     header.
//   - Logs must never contain secrets. If an environment variable contains malformed headers, the OpenTelemetry
//     library prints the headers.
//
// Secrets for the collector, such as a token, come only from $OTEL_EXPORTER_OTLP_HEADERS. Certificates for the
// collector come from $OTEL_EXPORTER_OTLP_CERTIFICATE and related variables, which the OpenTelemetry library reads.
package trace
