package trace

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config holds the settings of an exporter of spans (package otlp). The words in parentheses in the comments of the
// fields are keys in the section "tracing" of the configuration file. A zero value means the default value.
type Config struct {
	// Endpoint (endpoint) is the URL of the collector, with http:// or https://. The exporter appends the path
	// /v1/traces, unless the URL already ends with this path. If Endpoint is "", tracing is disabled.
	Endpoint string
	// Ratio (sample_ratio) is the fraction, from 0 to 1, of requests that the service records, among requests that the
	// caller does not trace. The default in the configuration is 1. If a caller traces a request, the caller decides
	// whether the service records the request.
	Ratio float64
	// ServiceName (service_name) is the value of the resource attribute service.name. The default is $OTEL_SERVICE_NAME
	// or, without this variable, the name capper.
	ServiceName string
	// Timeout (timeout) is the time limit of one request to the collector, from 100ms to 1m. The default is 10s.
	Timeout time.Duration
	// If MessageIDs (message_ids) is true, spans of calls about messages contain message ids. The default is false,
	// because message ids may contain personal data.
	MessageIDs bool

	// Version is the value of the resource attribute service.version.
	Version string
	// Logger logs failures and recoveries of the collector, at most once a minute. A nil Logger logs nothing.
	Logger *slog.Logger
	// Registerer registers the metrics. A nil Registerer registers no metrics.
	Registerer prometheus.Registerer
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
// Config.Endpoint. If the text is not a valid endpoint, the error contains the violated rule.
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

// The function "shown" returns the part of an invalid endpoint that an error text may contain. The result omits the
// text after the host, because this text may be a secret.
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
