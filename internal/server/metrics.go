// Package metrics counts calls and their users. All labels come from closed
// sets: routes, statuses, outcomes, and the names of segments, limits, channels,
// clients and pacers.
package server

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/pacing"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
)

// Metrics are what is counted of calls. It is safe for concurrent use.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	decided  *decided
	imported *prometheus.CounterVec

	// Clients counts users by the client that asked for them.
	Clients *clientMetrics
	// Pacers counts permits.
	Pacers *pacerMetrics
	// Records counts what calls for permits leave behind.
	Records *recordMetrics
}

// New registers the metrics of calls, of their users under the policy in force and of the
// pacers in force, and those that show what is held of the budgets and by the connections.
func newMetrics(
	registerer prometheus.Registerer, budgets *gate.Budgets, listeners *gate.Listeners,
	policy func() *capping.Policy, pacers *pacing.Pacers, clock func() time.Time,
) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_http_requests_total",
			Help: "HTTP requests by route and response status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "capper_http_request_seconds",
			Help:    "Duration of HTTP requests from reading the header to the end of the response, in seconds.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route"}),
		decided: newDecided(policy),
		imported: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_imported_sends_total",
			Help: "Imported sends of other systems by result: added, known, expired or unavailable.",
		}, []string{"result"}),
		Clients: newClients(),
		Pacers:  newPacers(pacers.Policy, clock),
	}
	m.Records = newRecords(pacers.Records(), m.Clients)
	var faults []error
	for _, c := range append(append(ofBudgets(budgets), ofConnections(listeners)...), m.requests, m.seconds, m.decided,
		m.imported, m.Clients.counter, m.Clients.exempt, m.Clients.refused, m.Pacers, m.Records) {
		faults = append(faults, registerer.Register(c))
	}
	m.CountImported(&api.ImportSummary{})
	return m, errors.Join(faults...)
}

// expected are the statuses that are counted for each route from the start, as
// 0: what alerts watch must be there before it happens the first time.
var expected = []int{http.StatusOK, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusServiceUnavailable}

// ExpectRoute makes the counters of a route.
func (m *Metrics) ExpectRoute(route string) {
	for _, status := range expected {
		m.requests.WithLabelValues(route, strconv.Itoa(status))
	}
	if timed(route) {
		m.seconds.WithLabelValues(route)
	}
}

// timed reports whether durations of the route mean anything: a profile takes
// as long as it was asked to.
func timed(route string) bool { return !strings.HasPrefix(route, "/debug/pprof/") }

// CountRequest counts a call that has been answered.
func (m *Metrics) CountRequest(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if timed(route) {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// CountImported counts the sends of an import.
func (m *Metrics) CountImported(sum *api.ImportSummary) {
	for result, n := range map[string]int{"added": sum.Added, "known": sum.Known, "expired": sum.Expired,
		"unavailable": sum.Unavailable} {
		m.imported.WithLabelValues(result).Add(float64(n))
	}
}

// CountDecisions counts the users of a call. names are those of its decisions.
func (m *Metrics) CountDecisions(sum *wire.Summary, names []string) { m.decided.count(sum, names) }
