package pebblestore

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	calls   *prometheus.CounterVec   // by op and result
	errors  *prometheus.CounterVec   // by kind
	seconds *prometheus.HistogramVec // by op
}

func newMetrics() *metrics {
	store := prometheus.Labels{"store": "embedded"}
	return &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_store_calls_total", Help: "Calls to the store.", ConstLabels: store,
		}, []string{"op", "result"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_store_errors_total", Help: "Errors of the store.", ConstLabels: store,
		}, []string{"kind"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capper_store_call_seconds", Help: "How long calls to the store took.", ConstLabels: store,
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"op"}),
	}
}

// register makes the metrics known, or none of them.
func (m *metrics) register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	collectors := []prometheus.Collector{m.calls, m.errors, m.seconds}
	for i, c := range collectors {
		if err := registerer.Register(c); err != nil {
			for _, registered := range collectors[:i] {
				registerer.Unregister(registered)
			}
			return err
		}
	}
	return nil
}

// observe counts a call that began at a time and ends now.
func (m *metrics) observe(op string, began time.Time, err *error) {
	result := "ok"
	switch {
	case errors.Is(*err, context.DeadlineExceeded), errors.Is(*err, context.Canceled):
		result = "deadline"
	case *err != nil:
		result = "error"
	}
	m.calls.WithLabelValues(op, result).Inc()
	m.seconds.WithLabelValues(op).Observe(time.Since(began).Seconds())
}
