package segments

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of a look at the source, the label of capper_segments_refresh_total.
const (
	resultSwapped   = "swapped"
	resultUnchanged = "unchanged"
	resultFailed    = "failed"
)

// metrics of a Refresher. The gauges read the snapshot when they are scraped.
type metrics struct {
	refreshes *prometheus.CounterVec
	current   func() *Snapshot
	built     func() time.Time
	clock     func() time.Time
	age       *prometheus.Desc
	checked   *prometheus.Desc
	users     *prometheus.Desc
	sets      *prometheus.Desc
	memory    *prometheus.Desc
	pins      *pins
	pinned    *prometheus.Desc
}

func newMetrics(to prometheus.Registerer, current func() *Snapshot, pins *pins, built, clock func() time.Time) *metrics {
	m := &metrics{
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_segments_refresh_total",
			Help: "Looks at the segments' source, by result: swapped (a new generation is in use), unchanged, failed.",
		}, []string{"result"}),
		current: current,
		pins:    pins,
		built:   built,
		clock:   clock,
		checked: prometheus.NewDesc("capper_segments_checked_timestamp_seconds",
			"When a build last published, or found its segments live already. Absent when the source does not say.", nil, nil),
		age: prometheus.NewDesc("capper_segments_generation_age_seconds",
			"Time since the generation in use was built.", nil, nil),
		users: prometheus.NewDesc("capper_segments_users",
			"Users in each segment of the generation in use.", []string{"segment"}, nil),
		sets: prometheus.NewDesc("capper_sets_users",
			"Users in each set of the generation in use.", []string{"set"}, nil),
		pinned: prometheus.NewDesc("capper_segments_pinned_bytes",
			"Memory of the earlier generations that are kept for calls that name them, beyond what they share with the one in use.", nil, nil),
		memory: prometheus.NewDesc("capper_segments_memory_bytes",
			"Memory of the generation in use.", nil, nil),
	}
	for _, result := range []string{resultSwapped, resultUnchanged, resultFailed} {
		m.refreshes.WithLabelValues(result) // so that each is there from the start, with 0
	}
	if to != nil {
		to.MustRegister(m.refreshes, m)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.age
	out <- m.checked
	out <- m.users
	out <- m.sets
	out <- m.memory
	out <- m.pinned
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	if at := m.built(); !at.IsZero() {
		out <- prometheus.MustNewConstMetric(m.checked, prometheus.GaugeValue, float64(at.Unix()))
	}
	s := m.current()
	if s == nil {
		return
	}
	out <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, m.clock().Sub(s.CreatedAt()).Seconds())
	out <- prometheus.MustNewConstMetric(m.memory, prometheus.GaugeValue, float64(s.SizeBytes()))
	out <- prometheus.MustNewConstMetric(m.pinned, prometheus.GaugeValue, float64(m.pins.sizeBytes(s)))
	for _, set := range s.Sets() {
		out <- prometheus.MustNewConstMetric(m.sets, prometheus.GaugeValue, float64(set.Cardinality), set.Name)
	}
	for _, segment := range s.Segments() {
		out <- prometheus.MustNewConstMetric(m.users, prometheus.GaugeValue, float64(segment.Cardinality), segment.Name)
	}
}
