package otlp

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

// Probe asks once whether the collector takes spans, by a request without any: it tells nothing but
// that somebody asked. What the environment says of headers and certificates counts as it does for a Tracer.
func Probe(ctx context.Context, cfg Config) (err error) {
	cfg = cfg.withDefaults()
	to, err := ParseEndpoint(cfg.Endpoint)
	if err != nil {
		return fmt.Errorf("tracing.endpoint: %w", err)
	}
	client := otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(to), otlptracehttp.WithTimeout(cfg.Timeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}))
	if err := client.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Stop(ctx)) }()
	return client.UploadTraces(ctx, nil)
}
