package redisstore

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are nil-safe: without a registerer there are none.
type metrics struct {
	calls   *prometheus.CounterVec
	errors  *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	if registerer == nil {
		return nil, nil
	}
	m := &metrics{}
	var faults [3]error
	m.calls, faults[0] = register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_store_calls_total", Help: "Calls of the store by result: ok, partial (some users undecided) or error.",
	}, []string{"store", "op", "result"}))
	m.errors, faults[1] = register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_store_errors_total", Help: "Failed attempts and users left undecided, by kind of error.",
	}, []string{"store", "kind"}))
	m.seconds, faults[2] = register(registerer, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "capper_store_call_seconds", Help: "Duration of calls of the store.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	}, []string{"store", "op"}))
	if err := errors.Join(faults[:]...); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		m.errors.WithLabelValues("redis", string(k)) // so that alerts see the first error as a step from 0
	}
	return m, nil
}

// register registers c, or finds the one that another store registered.
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

func (m *metrics) call(op, result string, took time.Duration) {
	if m == nil {
		return
	}
	m.calls.WithLabelValues("redis", op, result).Inc()
	m.seconds.WithLabelValues("redis", op).Observe(took.Seconds())
}

func (m *metrics) faults(f *faults) {
	if m == nil {
		return
	}
	for k, n := range f.attempts {
		m.errors.WithLabelValues("redis", string(k)).Add(float64(n))
	}
	for _, k := range []kind{kindCorrupt, kindWrongType, kindDeadline} {
		if n := f.users[k]; n > 0 {
			m.errors.WithLabelValues("redis", string(k)).Add(float64(n))
		}
	}
}

// result names how an operation over so many users ended.
func (f *faults) result(users int) string {
	undecided := 0
	for _, n := range f.users {
		undecided += n
	}
	switch {
	case undecided == 0:
		return "ok"
	case undecided < users:
		return "partial"
	}
	return "error"
}
