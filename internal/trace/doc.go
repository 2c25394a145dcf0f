// Package trace connects work with the request that it is done for: by the request id, which stands in the answer and
// in every log line, and by a span if the request is traced. Package trace records spans with OpenTelemetry and sends
// them to a collector by OTLP over HTTP. No other package uses the OpenTelemetry library.
//
// # Vocabulary
//
// A request id is the caller's name for a request, or an id that the service generated. A trace is the work for one
// request in all services that it passes. A span is one timed part of a trace, with attributes and a parent span. Span
// is OpenTelemetry's own type. Every request has a span. If the request is not recorded, the methods of its span do
// nothing at almost no cost, so callers never check whether a request is traced.
//
// # Propagation
//
// Within the process the span travels in the context of a call (Begin, Of, Start). Between services it travels in the
// HTTP headers traceparent and tracestate of the W3C, which the library reads and writes (Begin, Outgoing). For
// operators, Handler adds the ids to log records.
//
// # Private data
//
// A span never contains user ids, only counts. A span never contains texts of errors, because error texts may name
// users. A span holds the kind of the error, and the log holds the text under the same ids. A span contains message
// ids only if the configuration allows it.
//
// # Export
//
// If the caller traces a request, the caller decides whether the request is recorded. The configured share of all
// other requests is recorded.
//
// Ended spans wait in the library's batch processor, whose queue has a bounded length. One goroutine sends them in
// batches. Ending a span never blocks. If the collector is unavailable, slow or faulty, spans are dropped and counted,
// and the log reports the loss now and then.
//
// # Own code beside the library
//
// The library cannot keep some promises of the documents alone:
//   - Calls that are not recorded must cost almost nothing more (docs/benchmarks.md). Therefore one allocation holds
//     the request id and the span of a context, and SetInt and SetText build attributes only for recorded spans. For
//     the same reason, Begin selects the share of requests to record: the library's sampler needs 0.6 µs.
//   - Dropped spans are counted and logged. The library drops spans silently, and prints errors of the collector.
//   - The W3C's rules ignore unknown flags in traceparent and join repeated tracestate headers. The library ends the
//     trace at unknown flags and reads only the first tracestate header.
//   - Secrets never appear in a log. The library prints malformed headers from the environment.
//
// Secrets for the collector, such as a token, come only from $OTEL_EXPORTER_OTLP_HEADERS. Certificates come from
// $OTEL_EXPORTER_OTLP_CERTIFICATE and the related variables, which the library reads.
package trace
