package otlp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"golang.org/x/net/http/httpguts"

	"capper/internal/trace"
)

// Probe checks whether the collector of spans accepts requests: Probe sends one request without spans. The request uses
// the headers and certificates in the environment, like the requests of an Exporter.
func Probe(ctx context.Context, cfg trace.Config) (err error) {
	to, err := trace.ParseEndpoint(cfg.Endpoint)
	if err != nil {
		return fmt.Errorf("tracing.endpoint: %w", err)
	}
	client := otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(to),
		otlptracehttp.WithTimeout(cmp.Or(cfg.Timeout, trace.DefaultTimeout)),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}))
	if err := client.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Stop(ctx)) }()
	return client.UploadTraces(ctx, nil)
}

// checkHeaders returns an error if the environment contains malformed headers, because the OpenTelemetry library would
// ignore and print such headers. The error does not contain the headers, because headers may be secrets.
func checkHeaders() error {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		given := os.Getenv(variable)
		if given == "" {
			continue
		}
		for i, pair := range strings.Split(given, ",") {
			name, value, found := strings.Cut(pair, "=")
			value, err := url.PathUnescape(value)
			if !found || err != nil || !httpguts.ValidHeaderFieldName(strings.TrimSpace(name)) ||
				!httpguts.ValidHeaderFieldValue(value) {
				return fmt.Errorf(
					"tracing: $%s: pair %d must be name=value with a percent-encoded value, "+
						"such as Authorization=Bearer%%20…",
					variable, i+1)
			}
		}
	}
	return nil
}
