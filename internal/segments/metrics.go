package segments

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// resultSwapped, resultUnchanged and resultFailed are the possible results of a check of the source for a new
// generation (published version). The label values of the metric capper_segments_refresh_total are the results of
// checks.
const (
	resultSwapped   = "swapped"
	resultUnchanged = "unchanged"
	resultFailed    = "failed"
)

// The struct "metrics" contains the Prometheus metrics of a Refresher. The gauges describe the generation (published
// version) that is in use at the time of the scrape.
type metrics struct {
	refreshes *prometheus.CounterVec
	of        *Refresher
	clock     func() time.Time
	age       *prometheus.Desc
	checked   *prometheus.Desc
	users     *prometheus.Desc
	sets      *prometheus.Desc
	memory    *prometheus.Desc
	pinned    *prometheus.Desc
	refused   *prometheus.Desc
	left      *prometheus.Desc
	asOf      *prometheus.Desc
	zoneless  *prometheus.Desc
}

func newMetrics(to prometheus.Registerer, of *Refresher, clock func() time.Time) *metrics {
	m := &metrics{
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_segments_refresh_total",
			Help: "Checks for newly published segments, by result: swapped (new segments loaded), unchanged or failed.",
		}, []string{"result"}),
		of:    of,
		clock: clock,
		checked: prometheus.NewDesc("capper_segments_checked_timestamp_seconds",
			"Unix time at which segmentbuild last published the segments or found them unchanged. Absent if unknown.",
			nil, nil),
		age: prometheus.NewDesc("capper_segments_generation_age_seconds",
			"Time in seconds since segmentbuild built the segments that this instance uses.", nil, nil),
		users: prometheus.NewDesc("capper_segments_users",
			"Number of users in each segment that this instance has loaded.", []string{"segment"}, nil),
		sets: prometheus.NewDesc("capper_sets_users",
			"Number of users in each set when segmentbuild published the set.", []string{"set"}, nil),
		pinned: prometheus.NewDesc("capper_segments_pinned_bytes",
			"Bytes of additional memory for earlier published segments that calls may still use.", nil, nil),
		memory: prometheus.NewDesc("capper_segments_memory_bytes",
			"Bytes of memory for the segments and sets that this instance uses.", nil, nil),
		refused: prometheus.NewDesc("capper_segments_refused",
			"1 while capper rejects the newly published segments and keeps the earlier segments, by reason. "+
				"missing: a required set is absent. users: users left a protected set. zones: users lost their time "+
				"zone. calls: too many additions by API calls would lose effect. as_of: changes by API calls are "+
				"missing. ids: the kind or key of user ids differs.",
			[]string{"reason"}, nil),
		left: prometheus.NewDesc("capper_sets_left_users_total",
			"Number of users who left a set when capper loaded new segments, for sets that suppress or delay sends.",
			[]string{"set"}, nil),
		asOf: prometheus.NewDesc("capper_sets_confirmed_timestamp_seconds",
			"Unix time at which a build last confirmed the users of a set, for sets that suppress or delay sends.",
			[]string{"set"}, nil),
		zoneless: prometheus.NewDesc("capper_segments_zoneless_users",
			"Number of users without a known time zone in segments or sets. Absent if no rule needs time zones.",
			nil, nil),
	}
	for _, result := range []string{resultSwapped, resultUnchanged, resultFailed} {
		m.refreshes.WithLabelValues(result) // creates each label value with 0 at the start
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
	out <- m.refused
	out <- m.left
	out <- m.asOf
	out <- m.zoneless
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	status := m.of.Status()
	if at := status.BuiltAt; !at.IsZero() {
		out <- prometheus.MustNewConstMetric(m.checked, prometheus.GaugeValue, float64(at.Unix()))
	}
	s := m.of.Current()
	if s == nil {
		return
	}
	m.collectGuards(out, s, status.Refusal)
	out <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, m.clock().Sub(s.CreatedAt()).Seconds())
	out <- prometheus.MustNewConstMetric(m.memory, prometheus.GaugeValue, float64(s.SizeBytes()))
	out <- prometheus.MustNewConstMetric(m.pinned, prometheus.GaugeValue, float64(m.of.pins.sizeBytes(s)))
	for _, set := range s.Sets() {
		out <- prometheus.MustNewConstMetric(m.sets, prometheus.GaugeValue, float64(set.Cardinality), set.Name)
	}
	for _, segment := range s.Segments() {
		out <- prometheus.MustNewConstMetric(m.users, prometheus.GaugeValue, float64(segment.Cardinality), segment.Name)
	}
}

// collectGuards sends the metrics about guarded sets (sets with a limit on lost users) to the channel "out".
func (m *metrics) collectGuards(out chan<- prometheus.Metric, s *Snapshot, refusal *Refusal) {
	var reasons []string
	if refusal != nil {
		reasons = refusal.Reasons()
	}
	for _, reason := range Reasons() {
		value := 0.0
		if slices.Contains(reasons, reason) {
			value = 1
		}
		out <- prometheus.MustNewConstMetric(m.refused, prometheus.GaugeValue, value, reason)
	}
	for _, guard := range m.of.Guards() {
		out <- prometheus.MustNewConstMetric(m.left, prometheus.CounterValue, float64(guard.Left.Total), guard.Set)
		out <- prometheus.MustNewConstMetric(m.asOf, prometheus.GaugeValue, float64(guard.AsOf.Unix()), guard.Set)
	}
	if m.of.cfg.Guarded().Zones {
		out <- prometheus.MustNewConstMetric(m.zoneless, prometheus.GaugeValue, float64(s.Zoneless()))
	}
}
