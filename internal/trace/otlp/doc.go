// Package otlp records trace spans, and sends them to a collector by OTLP over HTTP (OpenTelemetry protocol). Packages
// that only begin spans import package trace, and do not depend on the large libraries of the exporter.
//
// Ended spans wait in the batch processor of the OpenTelemetry library, which has a queue with a maximum length. One
// goroutine sends the ended spans in batches. The end of a span never blocks. If the collector is unavailable, slow or
// faulty, package otlp drops spans and counts them. A log line reports dropped spans, at most once a minute.
//
// # Own code beside the library
//
// The OpenTelemetry library alone would break two promises in capper's documentation:
//   - Capper must count and log dropped spans. The OpenTelemetry library drops spans silently, and prints errors of the
//     collector.
//   - Logs must never contain secrets. If an environment variable contains malformed headers, the OpenTelemetry
//     library prints the headers.
//
// Secrets for the collector, such as a token, come only from $OTEL_EXPORTER_OTLP_HEADERS. Certificates for the
// collector come from $OTEL_EXPORTER_OTLP_CERTIFICATE and related variables. The OpenTelemetry library reads these
// variables.
package otlp
