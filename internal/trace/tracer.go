package trace

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"
)

// Exporter records spans, and sends these spans to a collector. An Exporter is safe for concurrent use.
type Exporter struct {
	provider *sdk.TracerProvider
	ratio    float64
}

// The constant scope is the name of the OpenTelemetry instrumentation scope of all spans.
const scope = "capper"

// OpenExporter returns an exporter that sends spans to the collector. OpenExporter does not check whether the collector
// is available.
func OpenExporter(ctx context.Context, cfg Config) (*Exporter, error) {
	to, err := ParseEndpoint(cfg.Endpoint)
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
	timeout := cmp.Or(cfg.Timeout, DefaultTimeout)
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to), otlptracehttp.WithTimeout(timeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second,
			MaxInterval: 5 * time.Second, MaxElapsedTime: timeout}))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	waiting, err := newQueue(exporter, cfg)
	if err != nil {
		return nil, err
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = 256
	return &Exporter{sdk.NewTracerProvider(sdk.WithResource(from), sdk.WithRawSpanLimits(limits),
		sdk.WithSampler(sdk.AlwaysSample()), sdk.WithSpanProcessor(waiting)), cfg.Ratio}, nil
}

// resourceOf returns the OpenTelemetry resource of all spans: a description of the service. In this description, values
// in the configuration override $OTEL_SERVICE_NAME and $OTEL_RESOURCE_ATTRIBUTES, and these variables override the
// defaults.
func resourceOf(ctx context.Context, cfg Config) (*resource.Resource, error) {
	var own []attribute.KeyValue
	if cfg.ServiceName != "" {
		own = append(own, attribute.String("service.name", cfg.ServiceName))
	}
	found, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "capper"), attribute.String("service.version",
			cfg.Version),
			attribute.String("service.instance.id", NewID(time.Now()))),
		resource.WithHost(), resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithAttributes(own...))
	if err != nil {
		return nil, fmt.Errorf("tracing: read resource attributes ($OTEL_RESOURCE_ATTRIBUTES): %w", err)
	}
	return found, nil
}

// The method begin begins a span for a request. The argument "from" is the span of the caller, and the argument "at" is
// the time at which the request arrived. If the exporter is nil, or if the caller does not record the caller's span,
// the method returns the span of the caller. The method never blocks.
func (e *Exporter) begin(from Span, at time.Time) Span {
	if e == nil {
		return from
	}
	switch caller := from.SpanContext(); {
	case caller.IsValid() && !caller.IsSampled():
		return from
	case !caller.IsValid() && e.ratio < 1 && rand.Float64() >= e.ratio:
		return unselected
	}
	_, s := e.provider.Tracer(scope).Start(otel.ContextWithSpan(context.Background(), from), "request",
		otel.WithTimestamp(at), otel.WithSpanKind(otel.SpanKindServer))
	return s
}

// Close sends the recorded spans, until all spans are sent or ctx ends. Spans that end after Close are lost.
func (e *Exporter) Close(ctx context.Context) error { return e.provider.Shutdown(ctx) }
