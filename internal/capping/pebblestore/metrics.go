package pebblestore

import (
	"github.com/prometheus/client_golang/prometheus"
)

// The type "metrics" holds the Prometheus metrics that only the embedded store has. Package measure has the metrics of
// calls, which are the same for all stores.
type metrics struct {
	errors *prometheus.CounterVec // by kind
}

func newMetrics() *metrics {
	return &metrics{
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name:        "capper_store_errors_total",
			Help:        "Number of errors in the embedded store (the local database of sends), by kind.",
			ConstLabels: prometheus.Labels{"store": "embedded"},
		}, []string{"kind"}),
	}
}

// The method "register" registers the metrics of the embedded store. If the registerer is nil, "register" does nothing.
func (m *metrics) register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	return registerer.Register(m.errors)
}
