package app

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"capper/internal/config"
	"capper/internal/testcluster"
)

// elsewhere lists the metrics that a service with the embedded store, or without TLS, does not register.
var elsewhere = map[string][]string{
	config.Embedded: {
		"capper_store_barred_partitions", "capper_store_promise_broken", "capper_store_records_gone",
		"capper_store_unheard_seconds", "capper_store_made_timestamp_seconds",
		"capper_store_shards", "capper_store_degraded_shards", "capper_store_unserved_partitions",
		"capper_store_replicas", "capper_store_replicas_known",
		"capper_store_replicas_needed", "capper_store_instances", "capper_store_instances_differing",
		"capper_rate_fallbacks_total",
		"capper_tls_certificate_expiry_timestamp_seconds", "capper_store_certificate_expiry_timestamp_seconds",
	},
	config.Redis: {"capper_tls_certificate_expiry_timestamp_seconds"},
}

// TestTheTableOfMetricsIsWhatIsRegistered checks that the table in docs/api.md lists exactly the registered metrics.
func TestTheTableOfMetricsIsWhatIsRegistered(t *testing.T) {
	t.Parallel()
	documented := documentedMetrics(t)
	for kind, store := range map[string]string{
		config.Embedded: onEmbedded(t.TempDir()),
		config.Redis:    onRedis(testcluster.Single(t, testcluster.Options{}).Addrs...),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			cfg, _ := configure(t, store+"\naudit: {to: "+t.TempDir()+"}", "")
			require.ElementsMatch(t, documented, append(registeredMetrics(begin(t, cfg).registry), elsewhere[kind]...))
		})
	}
}

// TestPagesNameMetricsThatThereAre checks that pages name only existing metrics.
func TestPagesNameMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	there := append(documentedMetrics(t),
		"capper_trace_spans_total", // only with tracing
		"capper_console",           // a cookie
		// Metrics of the file that capper audit verify --metrics writes.
		"capper_audit_verify_timestamp_seconds", "capper_audit_verify_duration_seconds", "capper_audit_verify_findings",
		"capper_audit_verify_store_timestamp_seconds", "capper_audit_verify_store_sends")
	pages, err := filepath.Glob("../../docs/*.md")
	require.NoError(t, err)
	name := regexp.MustCompile(`\b(capper_[a-z_]*[a-z])\b[^…/*_]`) // a family of metrics is written with an ellipsis at the end
	for _, page := range append(pages, "../../README.md", "../../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, found := range name.FindAllStringSubmatch(string(text), -1) {
			require.Contains(t, there, partOf.ReplaceAllString(found[1], ""), page)
		}
	}
}

// partOf matches the suffix that Prometheus adds to the name of a histogram.
var partOf = regexp.MustCompile(`_(bucket|sum|count)$`)

// documentedMetrics returns the names in the first column of the table.
func documentedMetrics(t *testing.T) (names []string) {
	text, err := os.ReadFile("../../docs/api.md")
	require.NoError(t, err)
	name := regexp.MustCompile("`(capper_[a-z_]+)`")
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `capper_") {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// registeredMetrics returns the names of capper's metrics, including those without a sample.
func registeredMetrics(registry *prometheus.Registry) (names []string) {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	name := regexp.MustCompile(`fqName: "(capper_[a-z_]+)"`)
	for d := range descriptions {
		if m := name.FindStringSubmatch(d.String()); m != nil {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
