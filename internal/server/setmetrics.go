package server

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/live"
)

// setMetrics counts the changes of sets by API calls, and reports the number of these changes that the store holds. A
// setMetrics is safe for concurrent use.
type setMetrics struct {
	sizes func() []live.Size // of the sets with live changes
	rules func() live.Rules
	clock func() time.Time

	changes *prometheus.CounterVec
	refused *prometheus.CounterVec

	users, oldest, used *prometheus.Desc
}

func newSetMetrics(sizes func() []live.Size, rules func() live.Rules, clock func() time.Time) *setMetrics {
	return &setMetrics{
		sizes: sizes, rules: rules, clock: clock,
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_set_changes_total",
			Help: "Number of users whom API calls added to or removed from a set, by set and kind (added or removed).",
		}, []string{"set", "kind"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_set_changes_refused_total",
			Help: "Rejected calls, by set, because the set would have more changes by API calls than 'max_live'.",
		}, []string{"set"}),
		users: prometheus.NewDesc("capper_set_live_users",
			"Users with a stored change of a set by API calls, by kind: added, removed or superseded (by a build).",
			[]string{"set", "kind"}, nil),
		oldest: prometheus.NewDesc("capper_set_live_oldest_seconds",
			"Age in seconds of a set's oldest change by API calls that is in force. Absent if no change is in force.",
			[]string{"set"}, nil),
		used: prometheus.NewDesc("capper_set_live_used_ratio",
			"Number of changes of a set by API calls, divided by the maximum number (max_live); 1 means full.",
			[]string{"set"}, nil),
	}
}

// The method count counts the changes of a set that an API call stored, for the metrics.
func (m *setMetrics) count(set string, added, removed int) {
	m.changes.WithLabelValues(set, api.ChangeAdded).Add(float64(added))
	m.changes.WithLabelValues(set, api.ChangeRemoved).Add(float64(removed))
}

// The method "full" counts an API call that the server refused because the set had too many live changes (changes by
// API calls).
func (m *setMetrics) full(set string) { m.refused.WithLabelValues(set).Inc() }

// Describe sends the descriptions of the metrics to Prometheus.
func (m *setMetrics) Describe(to chan<- *prometheus.Desc) {
	m.changes.Describe(to)
	m.refused.Describe(to)
	for _, desc := range []*prometheus.Desc{m.users, m.oldest, m.used} {
		to <- desc
	}
}

// Collect sends Prometheus the metrics of all sets that the configuration declares live, and of all other sets that
// API calls have changed.
func (m *setMetrics) Collect(to chan<- prometheus.Metric) {
	rules := m.rules()
	for set := range rules {
		if rules.IsLive(set) { // alert rules need the series before the first change
			m.count(set, 0, 0)
			m.refused.WithLabelValues(set)
		}
	}
	m.changes.Collect(to)
	m.refused.Collect(to)
	now := capping.InstantOf(m.clock())
	for _, size := range m.sizes() {
		for kind, n := range map[string]int{api.ChangeAdded: size.Additions, api.ChangeRemoved: size.Removals,
			"superseded": size.Superseded} {
			to <- prometheus.MustNewConstMetric(m.users, prometheus.GaugeValue, float64(n), size.Set, kind)
		}
		to <- prometheus.MustNewConstMetric(m.used, prometheus.GaugeValue,
			float64(size.Additions+size.Removals+size.Superseded)/float64(rules.Max(size.Set)), size.Set)
		if size.Oldest > 0 {
			to <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue,
				float64(max(0, now-size.Oldest))/1000, size.Set)
		}
	}
}
