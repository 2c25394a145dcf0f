package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"

	"golang.org/x/net/http/httpguts"
)

// Config holds the settings of an Exporter. The words in parentheses in the comments of the fields are keys in the
// section "tracing" of the configuration file. A zero value means the default value.
type Config struct {
	// Endpoint (endpoint) is the URL of the collector, with http:// or https://. The exporter appends the path
	// /v1/traces, unless the URL already ends with this path. If Endpoint is "", tracing is disabled.
	Endpoint string
	// Ratio (sample_ratio) is the fraction, from 0 to 1, of requests that the service records, among requests that the
	// caller does not trace. The default in the configuration is 1. If a caller traces a request, the caller decides
	// whether the service records the request.
	Ratio float64
	// ServiceName (service_name) is the resource attribute service.name. The default is $OTEL_SERVICE_NAME or, without
	// this variable, the name capper.
	ServiceName string
	// Timeout (timeout) is the time limit of one request to the collector, from 100ms to 1m. The default is 10s.
	Timeout time.Duration
	// If MessageIDs (message_ids) is true, spans of calls about messages contain message ids. The default is false,
	// because message ids may contain personal data.
	MessageIDs bool

	// Version is the resource attribute service.version.
	Version string
	// Logger logs failures and recoveries of the collector, at most once a minute. A nil Logger logs nothing.
	Logger *slog.Logger
	// Registerer registers the metrics. A nil Registerer registers no metrics.
	Registerer prometheus.Registerer

	// In tests, the field every replaces batchEvery (maximum time of a span in the queue).
	every time.Duration
}

// These constants are the default values of the tracing Config, and the smallest and largest permitted Timeout.
const (
	DefaultRatio   = 1
	DefaultTimeout = 10 * time.Second
	MinTimeout     = 100 * time.Millisecond
	MaxTimeout     = time.Minute
)

// tracesPath is the URL path under which collectors accept spans.
const tracesPath = "/v1/traces"

// ParseEndpoint returns the URL to which an exporter sends spans. The argument is a text in the form of
// Config.Endpoint. If the text is not a valid endpoint, the error names the broken rule.
func ParseEndpoint(text string) (string, error) {
	at, err := url.Parse(text)
	switch {
	case strings.Contains(text, "@"): // before all errors that contain the text
		return "", errors.New("must not contain a user or a password: use $OTEL_EXPORTER_OTLP_HEADERS for credentials")
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https":
		return "", fmt.Errorf(
			"must begin with http:// or https:// and name a host, such as http://127.0.0.1:4318, got %q",
			shown(text))
	case at.Port() != "" && !isPort(at.Port()):
		return "", fmt.Errorf("must have a port from 1 to 65535, got %q", shown(text))
	case at.RawQuery != "" || at.Fragment != "":
		return "", errors.New("must end with the path, without a query ('?') or fragment ('#'): " +
			"put credentials into $OTEL_EXPORTER_OTLP_HEADERS")
	}
	if at.Port() == "4317" {
		return "", fmt.Errorf(
			"must have the port of the collector for OTLP over HTTP, usually 4318, got %q: 4317 is the port for gRPC",
			text)
	}
	at.Path = strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), tracesPath) + tracesPath
	return at.String(), nil
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// The function shown returns the part of an invalid endpoint that an error text may contain. The result omits the text
// after the host, because this text may be a secret.
func shown(text string) string {
	_, rest, found := strings.Cut(text, "://")
	if !found {
		rest = text
	}
	host := strings.IndexAny(rest, "/?#")
	if host < 0 {
		return text
	}
	return strings.TrimSuffix(text, rest) + rest[:host] + "…"
}

// Probe checks whether the collector of spans accepts requests: Probe sends one request without spans. The request uses
// the headers and certificates in the environment, like the requests of an Exporter.
func Probe(ctx context.Context, cfg Config) (err error) {
	to, err := ParseEndpoint(cfg.Endpoint)
	if err != nil {
		return fmt.Errorf("tracing.endpoint: %w", err)
	}
	client := otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(to),
		otlptracehttp.WithTimeout(cmp.Or(cfg.Timeout, DefaultTimeout)),
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
