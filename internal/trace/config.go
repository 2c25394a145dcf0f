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

// Config holds the settings of an Exporter. Words in parentheses are the keys of tracing in the configuration file.
// Zero values stand for the defaults.
type Config struct {
	// Endpoint (endpoint) is the collector's URL, http:// or https://. The path /v1/traces is appended unless the URL
	// ends with it. If Endpoint is empty, nothing is traced.
	Endpoint string
	// Ratio (sample_ratio) is the share of requests to record among those whose callers do not trace, from 0 to 1.
	// The configuration's default is 1. A caller that traces decides for its own requests.
	Ratio float64
	// ServiceName (service_name) is the resource attribute service.name. The default is $OTEL_SERVICE_NAME, or else
	// capper.
	ServiceName string
	// Timeout (timeout) is the time limit for one request to the collector, 100ms to 1m. The default is 10s.
	Timeout time.Duration
	// MessageIDs (message_ids) adds message ids to the spans of calls about messages. The default is false, because
	// message ids may contain personal data.
	MessageIDs bool

	// Version is the resource attribute service.version.
	Version string
	// Logger logs, at most now and then, whether spans reach the collector. If it is nil, nothing is logged.
	Logger *slog.Logger
	// Registerer registers the metrics. If it is nil, there are no metrics.
	Registerer prometheus.Registerer

	// every replaces, in tests, the longest time that a span waits in the queue.
	every time.Duration
}

// These are the defaults of Config and the bounds of Timeout.
const (
	DefaultRatio   = 1
	DefaultTimeout = 10 * time.Second
	MinTimeout     = 100 * time.Millisecond
	MaxTimeout     = time.Minute
)

// tracesPath is the URL path at which collectors accept spans.
const tracesPath = "/v1/traces"

// ParseEndpoint returns the URL to which spans are sent, for an endpoint in the form of Config.Endpoint. The error
// states the violated rule.
func ParseEndpoint(text string) (string, error) {
	at, err := url.Parse(text)
	switch {
	case strings.Contains(text, "@"): // before any that shows the text
		return "", errors.New("must not contain a user or a password: use $OTEL_EXPORTER_OTLP_HEADERS for credentials")
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https":
		return "", fmt.Errorf(
			"must begin with http:// or https:// and name a host, such as http://127.0.0.1:4318, got %q",
			shown(text))
	case at.Port() != "" && !isPort(at.Port()):
		return "", fmt.Errorf("must have a port from 1 to 65535, got %q", shown(text))
	case at.RawQuery != "" || at.Fragment != "":
		return "", errors.New("must end with the path, without ? or #: use $OTEL_EXPORTER_OTLP_HEADERS for credentials")
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

// shown returns the part of an invalid endpoint that an error may show. The text after the host may be a secret and
// is left out.
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

// Probe checks once whether the collector accepts spans, with a request that contains none. Probe uses the headers
// and certificates in the environment, like an Exporter.
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

// checkHeaders returns an error if the environment has headers that the OpenTelemetry library would drop and print.
// The error does not contain the headers, because they may be secrets.
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
