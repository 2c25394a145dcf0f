package trace

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"
)

// Exporter records spans and sends them to a collector. Exporter is safe for concurrent use.
type Exporter struct {
	provider *sdk.TracerProvider
	tracer   otel.Tracer
	ratio    float64
}

var _ Tracer = (*Exporter)(nil)

// OpenExporter returns an exporter. OpenExporter does not check whether the collector answers.
func OpenExporter(ctx context.Context, cfg Config) (*Exporter, error) {
	cfg = cfg.withDefaults()
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
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to), otlptracehttp.WithTimeout(cfg.Timeout),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second,
			MaxInterval: 5 * time.Second, MaxElapsedTime: cfg.Timeout}))
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	waiting, err := newQueue(exporter, cfg)
	if err != nil {
		return nil, err
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = 256
	// Every span of this provider is sampled, because Begin creates no span for a request that is not selected.
	provider := sdk.NewTracerProvider(sdk.WithResource(from), sdk.WithSampler(sdk.AlwaysSample()),
		sdk.WithRawSpanLimits(limits), sdk.WithSpanProcessor(waiting))
	return &Exporter{provider: provider, tracer: provider.Tracer("capper"), ratio: cfg.Ratio}, nil
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.every == 0 {
		c.every = batchEvery
	}
	return c
}

// resourceOf returns the resource of all spans. The configuration takes precedence over $OTEL_SERVICE_NAME and
// $OTEL_RESOURCE_ATTRIBUTES, and these over the defaults.
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

// Begin implements trace.Tracer.
func (t *Exporter) Begin(from Remote, at time.Time) *Span {
	ctx := context.Background()
	if from.Parent == "" {
		if t.ratio < 1 && rand.Float64() >= t.ratio {
			return nil
		}
		return t.start(ctx, at)
	}
	if !from.Sampled() {
		return nil
	}
	return t.start(otel.ContextWithRemoteSpanContext(ctx, spanOf(from)), at)
}

// spanOf returns the caller's span. The library's own parser rejects unknown flags and would end the trace, so spanOf
// does not use it.
func spanOf(from Remote) otel.SpanContext {
	id, parent, _ := from.IDs()
	state, err := otel.ParseTraceState(from.State)
	if err != nil {
		state = otel.TraceState{}
	}
	return otel.NewSpanContext(otel.SpanContextConfig{
		TraceID: id, SpanID: parent, TraceFlags: otel.FlagsSampled, TraceState: state, Remote: true,
	})
}

func (t *Exporter) start(ctx context.Context, at time.Time) *Span {
	ctx, span := t.tracer.Start(ctx, "request", otel.WithTimestamp(at), otel.WithSpanKind(otel.SpanKindServer))
	return newSpan(&recorder{ctx, span, t.tracer})
}

// Close sends the recorded spans until ctx ends. Spans that end later are lost.
func (t *Exporter) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// Flush sends all ended spans.
func (t *Exporter) Flush(ctx context.Context) error { return t.provider.ForceFlush(ctx) }
