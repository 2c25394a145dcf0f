package otlp

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"capper/internal/trace"
)

// Exporter records spans, and sends these spans to a collector. An Exporter is safe for concurrent use.
type Exporter struct {
	provider *sdk.TracerProvider
	tracer   *trace.Tracer
}

// Open returns an exporter that sends spans to the collector. Open does not check whether the collector is available.
func Open(ctx context.Context, cfg trace.Config) (*Exporter, error) {
	return open(ctx, cfg, batchEvery)
}

// The function "open" works like Open; the argument "every" is the maximum time for which a span waits in the queue.
func open(ctx context.Context, cfg trace.Config, every time.Duration) (*Exporter, error) {
	to, err := trace.ParseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("tracing.endpoint: %w", err)
	}
	if err := checkHeaders(); err != nil {
		return nil, err
	}
	from, err := resourceOf(ctx, cfg)
	if err != nil {
		return nil, err
	}
	timeout := cmp.Or(cfg.Timeout, trace.DefaultTimeout)
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to), otlptracehttp.WithTimeout(timeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second,
			MaxInterval: 5 * time.Second, MaxElapsedTime: timeout}))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	waiting, err := newQueue(exporter, cfg, every)
	if err != nil {
		return nil, err
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = 256
	provider := sdk.NewTracerProvider(sdk.WithResource(from), sdk.WithRawSpanLimits(limits),
		sdk.WithSampler(sdk.AlwaysSample()), sdk.WithSpanProcessor(waiting))
	return &Exporter{provider, trace.NewTracer(provider, cfg.Ratio)}, nil
}

// resourceOf returns the OpenTelemetry resource of all spans: a description of the service. In this description, values
// in the configuration override $OTEL_SERVICE_NAME and $OTEL_RESOURCE_ATTRIBUTES, and these variables override the
// defaults.
func resourceOf(ctx context.Context, cfg trace.Config) (*resource.Resource, error) {
	var own []attribute.KeyValue
	if cfg.ServiceName != "" {
		own = append(own, attribute.String("service.name", cfg.ServiceName))
	}
	found, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "capper"), attribute.String("service.version",
			cfg.Version),
			attribute.String("service.instance.id", trace.NewID(time.Now()))),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithAttributes(own...))
	if err != nil {
		return nil, fmt.Errorf("tracing: read resource attributes ($OTEL_RESOURCE_ATTRIBUTES): %w", err)
	}
	return found, nil
}

// Tracer returns the tracer whose spans the exporter sends. If the exporter is nil, Tracer returns nil.
func (e *Exporter) Tracer() *trace.Tracer {
	if e == nil {
		return nil
	}
	return e.tracer
}

// Close sends the recorded spans, until all spans are sent or ctx ends. Spans that end after Close are lost.
func (e *Exporter) Close(ctx context.Context) error { return e.provider.Shutdown(ctx) }
