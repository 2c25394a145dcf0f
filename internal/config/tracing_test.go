package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/trace"
	"capper/internal/yamltree"
)

func TestParseReadsWhatIsTraced(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte(minimal))
	require.NoError(t, err)
	require.Empty(t, c.Tracing.Endpoint, "nothing is traced")
	for text, want := range map[string]trace.Config{
		"{endpoint: 'http://127.0.0.1:4318'}": {Endpoint: "http://127.0.0.1:4318", Ratio: 1, Timeout: 10 * time.Second},
		"{endpoint: 'https://c.example/otlp', sample_ratio: 0, service_name: capping, timeout: 100ms, " +
			"message_ids: true}": {
			Endpoint: "https://c.example/otlp", ServiceName: "capping", Timeout: 100 * time.Millisecond,
			MessageIDs: true},
		"{endpoint: 'http://[::1]:4318/v1/traces', sample_ratio: 0.001, timeout: 1m, message_ids: false}": {
			Endpoint: "http://[::1]:4318/v1/traces", Ratio: 0.001, Timeout: time.Minute},
	} {
		c, err := Parse("f", []byte(minimal+"tracing: "+text+"\n"))
		require.NoError(t, err)
		require.Equal(t, want, c.Tracing)
	}
}

func TestFaultsOfTracing(t *testing.T) {
	t.Parallel()
	const here = "{endpoint: 'http://a', "
	for text, want := range map[string]string{
		"{}": "f:4:10: tracing.endpoint: is required: set the URL of the collector for OTLP over HTTP, such as " +
			"http://127.0.0.1:4318",
		"null":                       "f:4:1: tracing: must have a value",
		"[]":                         "f:4:10: tracing: must be a mapping, got a list",
		"true":                       "f:4:10: tracing: must be a mapping, got true",
		"{sample_ratio: 1}":          "tracing.endpoint: is required",
		"{endpoint: ''}":             "f:4:21: tracing.endpoint: must not be empty",
		"{endpoint: null}":           "tracing.endpoint: must have a value",
		"{endpoint: [a]}":            "tracing.endpoint: must be a string, got a list",
		"{endpoint: 127.0.0.1:4318}": `tracing.endpoint: must begin with http:// or https:// and name a host, such as http://127.0.0.1:4318, got "127.0.0.1:4318"`,
		"{endpoint: 'a.example:4318/v1?token=x'}": `and name a host, such as http://127.0.0.1:4318, got "a.example:4318…"`,
		"{endpoint: 'htps://a/secret?token=x'}":   `and name a host, such as http://127.0.0.1:4318, got "htps://a…"`,
		"{endpoint: 'grpc://a'}":                  `must begin with http:// or https:// and name a host, such as http://127.0.0.1:4318, got "grpc://a"`,
		"{endpoint: 'http://'}":                   "must begin with http:// or https:// and name a host",
		"{endpoint: 'http://a b'}":                "must begin with http:// or https:// and name a host",
		"{endpoint: 'http://a:4317'}":             `must have the port of the collector for OTLP over HTTP, usually 4318, got "http://a:4317": 4317 is the port for gRPC`,
		"{endpoint: " +
			"'http://me:secret@a'}": "must not contain a user or a password: use $OTEL_EXPORTER_OTLP_HEADERS for " +
			"credentials",
		"{endpoint: 'http://%zz:secret@a'}": "must not contain a user or a password",
		"{endpoint: 'http://a?key=secret'}": "must end with the path, without a query ('?') or fragment ('#')",
		"{endpoint: 'http://a#secret'}":     "must end with the path",
		here + "sample_ratio: 1.01}": "f:4:47: tracing.sample_ratio: must be a number from 0 to 1, " +
			"got 1.01",
		here + "sample_ratio: -0.1}": "tracing.sample_ratio: must be a number from 0 to 1, got -0.1",
		here + "sample_ratio: .nan}": "tracing.sample_ratio: must be a number such as 5 or 0.5, " +
			"got .nan",
		here + "sample_ratio: .inf}": "tracing.sample_ratio: must be a number such as 5 or 0.5, " +
			"got .inf",
		here + "sample_ratio: '0.5'}": `tracing.sample_ratio: must be a number such as 5 or 0.5, got "0.5"`,
		here + "sample_ratio: 10%}":   `tracing.sample_ratio: must be a number such as 5 or 0.5, got "10%"`,
		here + "sample_ratio: null}":  "tracing.sample_ratio: must have a value",
		here + "timeout: 99ms}":       "f:4:42: tracing.timeout: must be at least 100ms, got 99ms",
		here + "timeout: 61s}":        "tracing.timeout: must be at most 1m, got 61s",
		here + "timeout: 10}":         "tracing.timeout: must be a duration such as 30s or 24h, got 10",
		here + "timeout: soon}":       `tracing.timeout: must be a duration such as 30s or 24h, got "soon"`,
		here + "service_name: ''}":    "tracing.service_name: must not be empty",
		here + "service_name: 7}":     "tracing.service_name: must be a string, got 7",
		here + "message_ids: yes}":    `tracing.message_ids: must be true or false, got "yes"`,
		here + "message_ids: 1}":      "tracing.message_ids: must be true or false, got 1",
		here + "headers: {a: b}}": "tracing.headers: is not a known key; known are endpoint, " +
			"message_ids, sample_ratio, service_name, timeout",
		here + "sample_rati: 1}":            `did you mean "sample_ratio"?`,
		"{endpoint: http://a, endpoint: b}": "tracing.endpoint: is given twice",
		"{endpoint: a, sample_ratio: 2, timeout: 1h}": "f:4:38: tracing.sample_ratio: must be a number from 0 to 1, " +
			"got 2\nf:4:50: tracing.timeout: must be at most 1m, got 1h",
	} {
		_, err := Parse("f", []byte(minimal+"tracing: "+text+"\n"))
		require.ErrorAs(t, err, new(*yamltree.Faults), text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "secret", text)
	}
	_, err := Parse("f", []byte(minimal+"tracing: {endpoint: ''}\n"))
	require.Len(t, err.(*yamltree.Faults).List, 1, "one fault is told once")
}

func TestTracingChangesOnlyAtAStartAndTheLevelAtOnce(t *testing.T) {
	t.Parallel()
	was, given, err := parse("f", []byte(minimal+"log: {level: info}\ntracing: {endpoint: 'http://a'}\n"))
	require.NoError(t, err)
	is, givenNow, err := parse("f", []byte(minimal+"log: {level: debug}\ntracing: {endpoint: 'http://a', "+
		"sample_ratio: 0.5}\n"))
	require.NoError(t, err)
	err = was.reloadable("f", is, given, givenNow)
	require.ErrorContains(t, err, "tracing.sample_ratio: requires a restart; the configuration in force stays")
	require.NotContains(t, err.Error(), "log.level")
}
