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

// The type Metrics counts API calls, and the users and permits that the calls concern. The values of all metric labels
// come from bounded sets: routes, statuses, outcomes, and configured names of segments, limits, channels, clients and
// pacers. A Metrics is safe for concurrent use.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	decided  *decided
	imported *prometheus.CounterVec

	// Clients counts users by the client of the call.
	Clients *clientMetrics
	// Pacers counts permits.
	Pacers *pacerMetrics
	// Sets counts the changes that calls make to sets.
	Sets *setMetrics
	// Records counts the records that permit requests leave in the store.
	Records *recordMetrics
}

// newMetrics registers the metrics of calls, users, pacers, budgets and connections.
func newMetrics(
	registerer prometheus.Registerer, budgets *gate.Budgets, listeners *gate.Listeners,
	policy func() *capping.Policy, pacers *pacing.Pacers, sets *setMetrics, clock func() time.Time, sole bool,
) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_http_requests_total",
			Help: "Number of HTTP requests, by route and response status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "capper_http_request_seconds",
			Help:    "Duration of HTTP requests from reading the header to the end of the response, in seconds.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route"}),
		decided: newDecided(policy),
		imported: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_imported_sends_total",
			Help: "Sends in import calls, by result: added, known (stored before), expired (too old) or unavailable.",
		}, []string{"result"}),
		Clients: newClients(),
		Sets:    sets,
		Pacers:  newPacers(pacers.Policy, clock, sole),
	}
	m.Records = newRecords(pacers.Records(), m.Clients)
	var faults []error
	for _, c := range append(append(ofBudgets(budgets), ofConnections(listeners)...), m.requests, m.seconds, m.decided,
		m.imported, m.Clients.counter, m.Clients.exempt, m.Clients.refused, m.Pacers, m.Records, m.Sets) {
		faults = append(faults, registerer.Register(c))
	}
	m.CountImported(&api.ImportSummary{})
	return m, errors.Join(faults...)
}

// The variable "expected" lists the HTTP statuses for which every route has a counter from the start, with the value 0.
// An alert rule on the increase of a counter works only if the counter exists before the first failure.
var expected = []int{http.StatusOK, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusServiceUnavailable}

// ExpectRoute creates the counters for requests to a route, with the value 0.
func (m *Metrics) ExpectRoute(route string) {
	for _, status := range expected {
		m.requests.WithLabelValues(route, strconv.Itoa(status))
	}
	if timed(route) {
		m.seconds.WithLabelValues(route)
	}
}

// The function "timed" reports whether the server measures the durations of calls to the route. The server does not
// measure calls for profiles, because the caller chooses the duration of a profile.
func timed(route string) bool { return !strings.HasPrefix(route, "/debug/pprof/") }

// CountRequest counts a finished call and its duration.
func (m *Metrics) CountRequest(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if timed(route) {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// CountImported counts the sends of an import by their result.
func (m *Metrics) CountImported(sum *api.ImportSummary) {
	for result, n := range map[string]int{"added": sum.Added, "known": sum.Known, "expired": sum.Expired,
		"unavailable": sum.Unavailable} {
		m.imported.WithLabelValues(result).Add(float64(n))
	}
}

// CountDecisions counts the users of a call by the outcome of their decisions. The argument "names" holds the names
// of the segments, because decisions refer to segments by number.
func (m *Metrics) CountDecisions(sum *wire.Summary, names []string) { m.decided.count(sum, names) }
