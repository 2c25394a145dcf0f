package server

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// The method Each calls the function "yield" with the value of every counter since the start of the process. The
// counters count users by outcome and, for each pacer, granted permits, refused permits and failed calls. The method
// Each may call "yield" several times with the same name; the caller must add up the values.
func (m *Metrics) Each(yield func(what, of string, n float64)) {
	each(m.decided.users, func(labels map[string]string, n float64) { yield(labels["outcome"], labels["limit"], n) })
	each(m.decided.shadow, func(labels map[string]string, n float64) { yield("shadow", labels["limit"], n) })
	for what, vector := range map[string]*prometheus.CounterVec{"granted": m.Pacers.granted,
		"refused": m.Pacers.refused, "failed": m.Pacers.failed} {
		each(vector, func(labels map[string]string, n float64) { yield(what, labels["pacer"], n) })
	}
}

// The function "each" calls the function "yield" with the labels and the value of every counter in a vector of
// Prometheus counters.
func each(vector *prometheus.CounterVec, yield func(labels map[string]string, n float64)) {
	collected := make(chan prometheus.Metric)
	go func() {
		defer close(collected)
		vector.Collect(collected)
	}()
	for counter := range collected {
		var value dto.Metric
		if err := counter.Write(&value); err != nil {
			continue // Write of a counter never fails
		}
		labels := map[string]string{}
		for _, pair := range value.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		yield(labels, value.GetCounter().GetValue())
	}
}
