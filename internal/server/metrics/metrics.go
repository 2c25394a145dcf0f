// Package metrics counts calls and their users. All labels come from closed
// sets: routes, statuses, outcomes, and the names of segments, limits, channels,
// clients and pacers.
package metrics

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
	"capper/internal/server/admission"
	"capper/internal/server/answer"
)

// Metrics are what is counted of calls. It is safe for concurrent use.
type Metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	users    *prometheus.CounterVec

	// Clients counts users by the client that asked for them.
	Clients *Clients
	// Pacers counts permits.
	Pacers *Pacers
}

// New registers the metrics of calls and of the pacers of the policy in force, and
// those that show what is held of the budgets and by the connections.
func New(
	registerer prometheus.Registerer, budgets *admission.Budgets, listeners *admission.Listeners,
	pacers func() *pacing.Policy, clock func() time.Time,
) (*Metrics, error) {
	m := &Metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_http_requests_total", Help: "Requests by route and status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capper_http_request_seconds", Help: "Time from the request's header to the end of the answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"route"}),
		users: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capper_users_total",
			Help: "Users of filter calls that record, by outcome (allowed, replayed, denied, unavailable), segment and, where denied, limit.",
		}, []string{"outcome", "segment", "limit"}),
		Clients: newClients(),
		Pacers:  newPacers(pacers, clock),
	}
	var faults []error
	for _, c := range append(append(ofBudgets(budgets), ofConnections(listeners)...), m.requests, m.seconds, m.users, m.Clients.counter, m.Pacers) {
		faults = append(faults, registerer.Register(c))
	}
	return m, errors.Join(faults...)
}

// expected are the statuses that are counted for each route from the start, as
// 0: what alerts watch must be there before it happens the first time.
var expected = []int{http.StatusOK, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}

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

// ExpectUsers makes the counters of the policy's segments. Those of segments
// without limits of their own, and of later policies, come with their users.
func (m *Metrics) ExpectUsers(p *capping.Policy) {
	m.expectSegment(api.NoSegment, p.Default)
	for segment, limits := range p.Segments {
		m.expectSegment(answer.SegmentName(segment), limits)
	}
}

func (m *Metrics) expectSegment(segment string, limits []capping.Limit) {
	for _, outcome := range []string{"allowed", "replayed", "unavailable"} {
		m.users.WithLabelValues(outcome, segment, "")
	}
	for i := range limits {
		m.users.WithLabelValues("denied", segment, limits[i].Name)
	}
}

// CountRequest counts a call that has been answered.
func (m *Metrics) CountRequest(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if timed(route) {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// CountDecisions counts the users of a call. names are those of its decisions.
func (m *Metrics) CountDecisions(sum *answer.Summary, names []string) {
	sum.EachSegment(names, m.add)
}

func (m *Metrics) add(outcome, segment, limit string, users int) {
	if users > 0 {
		m.users.WithLabelValues(outcome, segment, limit).Add(float64(users))
	}
}
