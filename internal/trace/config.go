package trace

import (
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

// Config of a Tracer. The fields with keys in parentheses are those of tracing in the
// configuration; zero values have the defaults that are named.
type Config struct {
	// Endpoint (endpoint) is the collector's URL, http:// or https://; /v1/traces is appended unless it ends with
	// that. "": nothing is traced.
	Endpoint string
	// Ratio (sample_ratio) is how many of the requests are recorded whose callers do not trace, 0 to 1;
	// the configuration's default is 1. Callers that do trace decide for theirs.
	Ratio float64
	// ServiceName (service_name) is the resource's service.name; default $OTEL_SERVICE_NAME, else capper.
	ServiceName string
	// Timeout (timeout) is how long the collector may take for one request, 100ms to 1m; default 10s.
	Timeout time.Duration
	// MessageIDs (message_ids): true: spans of calls about a message tell its id; default false,
	// as ids may hold what is somebody's.
	MessageIDs bool

	// Version is the resource's service.version.
	Version string
	// Logger takes what becomes of spans, now and then. Nil: it is discarded.
	Logger *slog.Logger
	// Registerer takes the metrics. Nil: there are none.
	Registerer prometheus.Registerer

	// every replaces the longest time that a span waits, in tests.
	every time.Duration
}

// The defaults of Config, and the bounds of Timeout.
const (
	DefaultRatio   = 1
	DefaultTimeout = 10 * time.Second
	MinTimeout     = 100 * time.Millisecond
	MaxTimeout     = time.Minute
)

// tracesPath is where collectors take spans.
const tracesPath = "/v1/traces"

// ParseEndpoint is the URL to which spans are sent, of an endpoint as Config.Endpoint. The
// error is a rule.
func ParseEndpoint(text string) (string, error) {
	at, err := url.Parse(text)
	switch {
	case strings.Contains(text, "@"): // before any that shows the text
		return "", errors.New("must not contain a user or a password: use $OTEL_EXPORTER_OTLP_HEADERS for credentials")
	case err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https":
		return "", fmt.Errorf("must begin with http:// or https:// and name a host, such as http://127.0.0.1:4318, "+
			"got %q",
			shown(text))
	case at.Port() != "" && !isPort(at.Port()):
		return "", fmt.Errorf("must have a port from 1 to 65535, got %q", shown(text))
	case at.RawQuery != "" || at.Fragment != "":
		return "", errors.New("must end with the path: use $OTEL_EXPORTER_OTLP_HEADERS for credentials")
	}
	if at.Port() == "4317" {
		return "", fmt.Errorf("must have the port of the collector for OTLP over HTTP, usually 4318, got %q: 4317 "+
			"is the port for gRPC", text)
	}
	at.Path = strings.TrimSuffix(strings.TrimSuffix(at.Path, "/"), tracesPath) + tracesPath
	return at.String(), nil
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port > 0
}

// shown is of an endpoint what may be shown where it cannot be read: what is behind its host may be a secret.
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

// checkHeaders refuses headers of the environment that the library would leave out and
// print, as they may be secrets: the error does not have them.
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
				return fmt.Errorf("tracing: $%s: pair %d must be name=value with a percent-encoded value, such as "+
					"Authorization=Bearer%%20…", variable, i+1)
			}
		}
	}
	return nil
}
