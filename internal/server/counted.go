package server

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Each calls yield with what was counted since the start: users by what was decided of them
// (allowed, replayed, unavailable; denied and shadow of a limit), and of a pacer permits that
// were granted and refused and calls that failed. The same may come in several parts.
func (m *Metrics) Each(yield func(what, of string, n float64)) {
	each(m.decided.users, func(labels map[string]string, n float64) { yield(labels["outcome"], labels["limit"], n) })
	each(m.decided.shadow, func(labels map[string]string, n float64) { yield("shadow", labels["limit"], n) })
	for what, vector := range map[string]*prometheus.CounterVec{"granted": m.Pacers.granted,
		"refused": m.Pacers.refused, "failed": m.Pacers.failed} {
		each(vector, func(labels map[string]string, n float64) { yield(what, labels["pacer"], n) })
	}
}

// each calls yield with every counter of the vector.
func each(vector *prometheus.CounterVec, yield func(labels map[string]string, n float64)) {
	collected := make(chan prometheus.Metric)
	go func() {
		defer close(collected)
		vector.Collect(collected)
	}()
	for counter := range collected {
		var value dto.Metric
		if err := counter.Write(&value); err != nil {
			continue // a counter always writes
		}
		labels := map[string]string{}
		for _, pair := range value.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		yield(labels, value.GetCounter().GetValue())
	}
}
