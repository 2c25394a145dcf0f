// Package trace says, of whatever is done for a request, which request that is: by its
// id, which stands in the answer and in every line of the log, and by its span, where
// the request is traced.
//
// # Vocabulary
//
// A request id is the caller's name of a request, or one that was made for it. A trace is
// what happened for one request of somebody, at all services that it passed; a span is
// one part of it that took time, with attributes, and with the span that it is a part
// of. A span that is nil is none: each method does nothing and costs next to nothing, so
// that no caller asks whether it is traced.
//
// # How it is passed on
//
// Within the process, in the context of a call (With, Start, Of). To others over HTTP,
// by the headers traceparent and tracestate of the W3C (Outgoing), which are taken from
// callers too (Incoming). To operators, by Handler, which adds the ids to log records
// whose context has them.
//
// # What is never in a span
//
// Users: counts stand for them. Texts of errors: they may name users; the kind of a fault
// stands for it, and the log has the text under the same ids. Message ids, unless the
// configuration says that they are no personal data.
//
// Who records spans and sends them to a collector is package otlp, through a Tracer.
//
// # Otlp
//
// Package otlp records spans with OpenTelemetry and sends them to a collector, by OTLP over
// HTTP. It is the only user of that library.
//
// A request whose caller traces it is recorded when the caller says so; of others, a share
// that the configuration names. What is not recorded comes to no span at all.
//
// Spans that have ended wait in a queue of bounded length, which one goroutine sends in
// batches. Nobody who ends a span ever waits: a collector that is away, slow or faulty costs
// spans, which are counted, and told in the log now and then.
//
// Keys are those of the configuration. What the collector asks for, such as a token, is in
// $OTEL_EXPORTER_OTLP_HEADERS alone; its certificates in $OTEL_EXPORTER_OTLP_CERTIFICATE and its
// like, which the library reads.
package trace
