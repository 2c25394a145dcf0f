package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/pacing"
)

// recordMetrics reports the number of stored records of permit requests for each configured client. A recordMetrics is
// safe for concurrent use.
type recordMetrics struct {
	records *pacing.Records // nil: the service counts no records
	clients *clientMetrics

	byClient, inAll, used *prometheus.Desc
}

func newRecords(records *pacing.Records, clients *clientMetrics) *recordMetrics {
	return &recordMetrics{
		records: records, clients: clients,
		byClient: prometheus.NewDesc("capper_permit_records",
			"Permit records in the store, by client and kind: request (of a past call) or log (of a message or key).",
			[]string{"client", "kind"}, nil),
		inAll: prometheus.NewDesc("capper_permit_records_in_all",
			"Permit records of all clients in the store, by kind: request (of a past call) or log (of a message or "+
				"key).",
			[]string{"kind"}, nil),
		used: prometheus.NewDesc("capper_permit_records_used_ratio",
			"Used fraction of the fullest limit on the number of permit records in the store; 1 means full.", nil, nil),
	}
}

// Describe sends the descriptions of the metrics to Prometheus.
func (r *recordMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- r.byClient
	to <- r.inAll
	to <- r.used
}

// Collect sends the metrics of the configured clients to Prometheus.
func (r *recordMetrics) Collect(to chan<- prometheus.Metric) {
	if r.records == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, n float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, n, labels...)
	}
	for _, kind := range pacing.RecordKinds() {
		for _, client := range r.clients.now() {
			gauge(r.byClient, float64(r.records.Count(client, kind)), client, kind.String())
		}
		gauge(r.inAll, float64(r.records.CountAll(kind)), kind.String())
	}
	gauge(r.used, r.records.Used())
}
