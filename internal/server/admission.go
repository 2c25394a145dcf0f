package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/server/gate"
)

// ofBudgets returns the metrics of the budgets for users and memory. For each budget, the metrics are the amount in
// use, the number of refused calls, and the number of calls that the budget cut off.
func ofBudgets(budgets *gate.Budgets) (list []prometheus.Collector) {
	held := map[string]prometheus.GaugeOpts{
		"users":   {Name: "capper_in_flight_users", Help: "Number of users in calls that capper is processing now."},
		"bodies":  {Name: "capper_in_flight_body_bytes", Help: "Bytes of memory that request bodies use now."},
		"answers": {Name: "capper_in_flight_answer_bytes", Help: "Bytes of memory that unsent responses use now."},
	}
	for name, b := range map[string]*gate.Budget{"users": budgets.Users, "bodies": budgets.Bodies,
		"answers": budgets.Answers} {
		labels := prometheus.Labels{"budget": name}
		list = append(list, prometheus.NewGaugeFunc(held[name], func() float64 { return float64(b.InUse()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name:        "capper_budget_refused_total",
				Help:        "Calls rejected with status 503, because running calls have too many users or bytes.",
				ConstLabels: labels,
			}, func() float64 { _, refused, _ := b.Usage(); return float64(refused) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name:        "capper_budget_cut_total",
				Help:        "Calls of slow clients that capper aborted, because other clients needed the memory.",
				ConstLabels: labels,
			}, func() float64 { _, _, cuts := b.Usage(); return float64(cuts) }))
	}
	return list
}

// ofConnections returns the metrics that count the network connections of all listeners.
func ofConnections(listeners *gate.Listeners) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "capper_open_connections",
			Help: "Number of open network connections from clients to capper.",
		}, func() float64 { open, _ := listeners.Usage(); return float64(open) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "capper_connections_closed_total",
			Help: "Connections that capper closed because the maximum number of connections was already open.",
		}, func() float64 { _, closed := listeners.Usage(); return float64(closed) }),
	}
}
