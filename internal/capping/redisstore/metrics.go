package redisstore

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/topology"
)

// The type "metrics" holds the Prometheus metrics that only the Redis store has. Package measure counts the calls of
// every store. A nil *metrics is valid and records nothing.
type metrics struct {
	errors *prometheus.CounterVec

	barred    *prometheus.GaugeVec
	gone      *prometheus.GaugeVec
	instances *prometheus.GaugeVec
	differing *prometheus.GaugeVec
	made      *prometheus.GaugeVec
	unheard   *prometheus.GaugeVec
	shards    *shards
}

// The type "shards" is a Prometheus collector for the Redis masters of the newest store, as of the last refresh of the
// topology.
type shards struct {
	store                          atomic.Pointer[Store] // nil: no store yet
	all, degraded, unserved, least *prometheus.Desc
	replicas, known, certificates  *prometheus.Desc
	broken                         *prometheus.Desc
}

func newShards() *shards {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, prometheus.Labels{"store": "redis"})
	}
	return &shards{
		all: desc("capper_store_shards", "Number of Redis masters that store the sends of users."),
		degraded: desc("capper_store_degraded_shards",
			"Number of Redis masters that are down or have too few replicas, so that their users get no decisions."),
		unserved: desc("capper_store_unserved_partitions",
			"Number of the 65 store partitions that no Redis node serves."),
		least: desc("capper_store_replicas_needed",
			"Minimum number of working replicas of a Redis master; with fewer, the master's users get no decisions."),
		replicas: desc("capper_store_replicas", "Number of working replicas of each Redis master.", "node"),
		known: desc("capper_store_replicas_known",
			"Number of all replicas of each Redis master, working or not; 0 while the master does not answer.",
			"node"),

		certificates: desc("capper_store_certificate_expiry_timestamp_seconds",
			"Unix time at which the TLS certificate of each Redis server expires. Absent without TLS.",
			"node"),
		broken: desc("capper_store_promise_broken",
			"Store partitions whose users get no decisions until an operator accepts a possible loss, by reason. "+
				"policy: the Redis server may evict keys. evicted: the server has evicted keys. append_only: the "+
				"server has no append-only file.",
			"node", "reason"),
	}
}

// Describe implements prometheus.Collector.
func (s *shards) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.all, s.degraded, s.unserved, s.least, s.replicas, s.known, s.certificates,
		s.broken} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *shards) Collect(to chan<- prometheus.Metric) {
	store := s.store.Load()
	if store == nil {
		return
	}
	for addr, c := range store.top.Certificates() {
		to <- prometheus.MustNewConstMetric(s.certificates, prometheus.GaugeValue, float64(c.Ends.Unix()), addr)
	}
	gauge := func(desc *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), labels...)
	}
	list, degraded := store.top.Shards(), 0
	for _, shard := range list {
		if shard.Degraded {
			degraded++
		}
		gauge(s.replicas, shard.Working, shard.Addr)
		gauge(s.known, shard.Known, shard.Addr)
	}
	for _, b := range store.top.BrokenPromises() {
		gauge(s.broken, b.Partitions, b.Node, b.Reason)
	}
	gauge(s.all, len(list))
	gauge(s.degraded, degraded)
	gauge(s.unserved, store.top.Unserved())
	gauge(s.least, store.config.ReplicaAcks.NeededReplicas())
}

// showShards makes the Prometheus collector "shards" report the masters of the store s.
func (m *metrics) showShards(s *Store) {
	if m != nil {
		m.shards.store.Store(s)
	}
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	if registerer == nil {
		return nil, nil
	}
	m := &metrics{}
	var refused error
	m.errors, refused = register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_store_errors_total",
		Help: "Redis failures by kind. For the kinds 'corrupt', 'wrong_type' and 'deadline', the value is " +
			"the number of users without a decision. For other kinds, the value is the number of failed requests.",
	}, []string{"store", "kind"}))
	var doubled error
	m.shards, doubled = register(registerer, newShards())
	if err := errors.Join(refused, doubled, m.registerFleet(registerer)); err != nil {
		return nil, err
	}
	for _, k := range fault.Kinds() {
		m.errors.WithLabelValues("redis", string(k)) // so that an alert sees the first error as an increase from 0
	}
	return m, nil
}

// registerFleet registers the metrics whose values come from heartbeats.
func (m *metrics) registerFleet(registerer prometheus.Registerer) error {
	var faults []error
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g, err := register(registerer, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help},
			append([]string{"store"}, labels...)))
		faults = append(faults, err)
		return g
	}
	m.barred = gauge("capper_store_barred_partitions",
		"Number of the 64 store partitions whose users get no decisions because data is at risk, by reason. "+
			"gone: the Redis server lost all data. dropped: the server dropped records while loading. older: the "+
			"server has older data than before. clock: the server's clock was ahead. broken: the server may lose "+
			"data. parted: two servers serve parts of the hash slot.", "reason")
	m.gone = gauge("capper_store_records_gone",
		"1 while Redis lacks the records with which capper describes the store, for example after FLUSHALL.")
	m.instances = gauge("capper_store_instances",
		"Number of capper instances that use the same store, including this instance.")
	m.differing = gauge("capper_store_instances_differing",
		"Number of other capper instances whose setting or version (label key) differs from this instance.", "key")
	m.made = gauge("capper_store_made_timestamp_seconds", "Unix time at which capper created the empty store in Redis.")
	m.unheard = gauge("capper_store_unheard_seconds",
		"Seconds since this instance last exchanged its state with other instances; 0 while the exchange works.")
	return errors.Join(faults...)
}

// showFleet sets the metrics whose values come from the latest heartbeat.
func (m *metrics) showFleet(s *Store) {
	if m == nil {
		return
	}
	f := s.fleet
	seen := f.seen.Load()
	counts := s.barredPartitions()
	for _, reason := range topology.Reasons() {
		m.barred.WithLabelValues("redis", reason).Set(float64(counts[reason]))
	}
	gone := 0.0
	if seen.gone != nil {
		gone = 1
	}
	m.gone.WithLabelValues("redis").Set(gone)
	unheard := 0.0
	if missed := f.missed.Load(); missed != nil {
		unheard = time.Since(missed.since).Seconds()
	}
	m.unheard.WithLabelValues("redis").Set(unheard)
	m.instances.WithLabelValues("redis").Set(float64(seen.fleet.Instances))
	for key := range f.own.text {
		m.differing.WithLabelValues("redis", key).Set(float64(seen.fleet.Differing[key]))
	}
	if !seen.fleet.Made.IsZero() {
		m.made.WithLabelValues("redis").Set(float64(seen.fleet.Made.UnixMilli()) / 1000)
	}
}

// The function "register" registers the collector c. If another store has already registered an equal collector,
// "register" returns the existing collector.
func register[C prometheus.Collector](registerer prometheus.Registerer, c C) (C, error) {
	err := registerer.Register(c)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	return c, err
}

func (m *metrics) countFaults(f *dispatch.Faults) {
	if m == nil {
		return
	}
	for k, n := range f.Attempts {
		m.errors.WithLabelValues("redis", string(k)).Add(float64(n))
	}
	for _, k := range []fault.Kind{fault.Corrupt, fault.WrongType, fault.Deadline} {
		if n := f.Users[k]; n > 0 {
			m.errors.WithLabelValues("redis", string(k)).Add(float64(n))
		}
	}
}
