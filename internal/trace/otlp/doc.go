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
package otlp
