//go:build storms

package alerts

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// fleets are what is scraped: two services with an embedded store each, and two on one Redis Cluster with two replicas
// for each master.
type fleets struct {
	prometheus *prometheus
	embedded   []*service
	redis      []*service
	cluster    *testcluster.Cluster
}

// Everything that is shipped, against services that run: while they are well nothing fires, every query has an answer,
// and what is broken fires its alert and no other, until it is mended.
func TestWhatIsShippedWatchesRealServices(t *testing.T) {
	f := begin(t)
	if !t.Run("nothing fires while all is well", f.calm) {
		return
	}
	t.Run("every query has an answer", f.queries)
	t.Run("what breaks fires its alert and no other", func(t *testing.T) {
		t.Run("embedded", func(t *testing.T) { t.Parallel(); f.ruin(t, "embedded", causesOfSegments(f.embedded[0])) })
		t.Run("recorded", func(t *testing.T) { t.Parallel(); f.ruin(t, "recorded", causesOfRecords(f.embedded[1])) })
		t.Run("redis", func(t *testing.T) { t.Parallel(); f.ruin(t, "redis", f.causesOfRedis(t)) })
	})
}

func begin(t *testing.T) *fleets {
	f := &fleets{cluster: testcluster.Start(t, testcluster.Options{Replicas: 2,
		Settings: []string{"cluster-allow-replica-migration no"}})}
	source := filepath.Join(t.TempDir(), "segments")
	for _, dir := range []string{source, source + "-embedded", source + "-recorded"} {
		publishTo(t, dir, 0, 100)
	}
	for _, job := range []string{"embedded", "recorded"} {
		f.embedded = append(f.embedded, start(t, job, "{embedded: {path: log.db, cache_size: 16MiB}}", source+"-"+job,
			true))
	}
	store := fmt.Sprintf("{kind: redis, redis: {addrs: [%s]}}", strings.Join(f.cluster.Addrs, ", "))
	f.redis = []*service{start(t, "redis", store, source, false), start(t, "redis", store, source, false)}
	var targets []target
	for _, s := range f.all() {
		targets = append(targets, s.target())
		s.load()
	}
	f.prometheus = scrape(t, targets...)
	return f
}

func (f *fleets) all() []*service { return slices.Concat(f.embedded, f.redis) }

// jobs are theirs.
func jobs() []string { return []string{"embedded", "recorded", "redis"} }

// calm is five minutes' worth of a window twice, and some.
func (f *fleets) calm(t *testing.T) {
	testkit.Eventually(t, func() bool {
		up, err := f.prometheus.query("count(up == 1) == 4")
		// Prometheus takes seconds to know its targets: CapperAbsent
		return err == nil && len(up) == 1 && len(f.prometheus.firing("")) == 0
	})
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for ends := time.Now().Add(6 * time.Second); time.Now().Before(ends); <-look.C {
		f.callEverything(t)
		for _, job := range jobs() {
			require.Empty(t, f.prometheus.unexpected(job, nil), f.prometheus.told(job))
		}
	}
}

func (f *fleets) callEverything(t *testing.T) {
	for _, s := range f.all() {
		require.NoError(t, s.everything(t.Context()))
	}
}

// empty are the queries that have no answer while all is well, each with the reason.
var empty = map[string]string{
	"ALERTS{":                         "no alert fires",
	"capper_store_replicas_known":     "no replica is away",
	"offset ":                         "the services are not a day old",
	"go_gc_gomemlimit_bytes":          "there is no GOMEMLIMIT",
	"capper_store_errors_total{job":   "nothing fails",
	"capper_segments_zoneless_users":  "no rule asks for users' time zones",
	"capper_store_promise_broken":     "the Redis servers keep their promises",
	"capper_store_certificate_expiry": "the Redis servers have no TLS",
}

func reasoned(expr string) bool {
	for part := range empty {
		if strings.Contains(expr, part) {
			return true
		}
	}
	return false
}

// chosen puts in what Grafana would for the variables, all being chosen by name, and shortens time.
func chosen(expr string, jobs, instances []string) string {
	escape := func(values []string) string {
		var list []string
		for _, v := range values {
			// as Grafana does, in a PromQL string
			list = append(list, strings.ReplaceAll(regexp.QuoteMeta(v), `\`, `\\`))
		}
		return "(" + strings.Join(list, "|") + ")"
	}
	return Shorten(strings.NewReplacer("$job|", escape(jobs)+"|", "$job", escape(jobs), "$instance", escape(instances),
		"[$__rate_interval]", "[4m]", "[$__interval]", "[4m]").Replace(expr))
}

// Every panel's and every rule's query is executed. It has an answer, or a reason for none, and
// its metrics are those that services show.
func (f *fleets) queries(t *testing.T) {
	var instances []string
	for _, s := range f.all() {
		instances = append(instances, s.addr)
	}
	known := shown(t, f.all()...)
	used := map[string]bool{}
	asks := func(what, expr string, mayBeEmpty bool) {
		for _, name := range metricsOf(expr) {
			used[name] = true
			require.True(t, known[name] || beside[name] || strings.HasPrefix(name, "capper:"),
				"%s: no such metric as %s", what, name)
		}
		require.Eventually(t, func() bool {
			answer, err := f.prometheus.query(expr)
			require.NoError(t, err, "%s: %s", what, expr)
			if mayBeEmpty || slices.ContainsFunc(answer, func(s series) bool { return s.numbers() > 0 }) {
				return true
			}
			// A query over the last seconds has an answer only if calls of every kind go on.
			f.callEverything(t)
			return false
		}, time.Minute, 200*time.Millisecond, "%s has no answer: %s", what, expr)
	}
	for name := range dashboards() {
		m := read(t, name)
		for _, annotation := range m.Annotations.List {
			asks(annotation.Name, chosen(annotation.Expr, jobs(), instances), true)
		}
		for _, p := range m.Panels {
			for _, q := range p.Targets {
				asks(p.Title, chosen(q.Expr, jobs(), instances), reasoned(q.Expr))
			}
		}
	}
	for _, r := range f.prometheus.rules() {
		require.Equal(t, "ok", r.Health, r.LastError)
		// what it takes for an answer is broken below, and in deploy/prometheus/tests
		asks(r.Name, r.Query, r.Type == "alerting")
	}
	for name := range known {
		if metric := base(name); strings.HasPrefix(metric, "capper_") {
			require.True(t, used[name] || used[metric] || used[metric+"_bucket"] || used[metric+"_count"],
				"no panel and no rule looks at %s", name)
		}
	}
}

// beside are metrics that are not of services: Prometheus' own, and those of nightly jobs. The last three are of
// services whose configuration uses time zones of users, and whose Redis servers have TLS or broke a promise.
var beside = map[string]bool{"up": true, "ALERTS": true, "segmentbuild_exit_status": true,
	"capper_audit_verify_findings": true, "capper_audit_verify_store_timestamp_seconds": true,
	"capper_audit_verify_store_sends": true,
	"capper_segments_zoneless_users":  true, "capper_store_certificate_expiry_timestamp_seconds": true,
	"capper_store_promise_broken": true,
}

func base(name string) string {
	return regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	labels    = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]|\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	functions = regexp.MustCompile(`\b[a-z_0-9]+\s*\(`)
	words     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	keywords  = []string{"and", "or", "unless", "offset", "by", "on", "bool", "group_left", "sum", "max", "min",
		"count", "ms", "e"}
)

// metricsOf are the names of metrics in an expression: the words that are neither a label, a function nor a keyword.
func metricsOf(expr string) (names []string) {
	rest := labels.ReplaceAllString(quoted.ReplaceAllString(expr, `""`), " ")
	rest = regexp.MustCompile(`\d+(ms|s|m|h|d)\b`).ReplaceAllString(functions.ReplaceAllString(rest, "("), "")
	for _, word := range words.FindAllString(rest, -1) {
		if !slices.Contains(keywords, word) {
			names = append(names, word)
		}
	}
	return names
}
