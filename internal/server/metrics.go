package server

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"capper/client/api"
	"capper/internal/capping"
	"capper/internal/server/admission"
	"capper/internal/server/answer"
)

// metrics are what is counted of calls. All labels come from closed sets:
// routes, statuses, outcomes, and the names of segments and limits.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	users    *prometheus.CounterVec
	clients  *clientUsers
}

func newMetrics(registerer prometheus.Registerer, s *Server) (*metrics, error) {
	m := &metrics{
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
		clients: newClientUsers(),
	}
	var faults []error
	for _, c := range append(s.budgetMetrics(), m.requests, m.seconds, m.users, m.clients.counter) {
		faults = append(faults, registerer.Register(c))
	}
	return m, errors.Join(faults...)
}

// budgetMetrics show what is held of each budget, and whom it has turned away.
func (s *Server) budgetMetrics() (list []prometheus.Collector) {
	held := map[string]prometheus.GaugeOpts{
		"users":   {Name: "capper_in_flight_users", Help: "Users of the calls being decided."},
		"bodies":  {Name: "capper_in_flight_body_bytes", Help: "Memory of the bodies that are received and decoded."},
		"answers": {Name: "capper_in_flight_answer_bytes", Help: "Memory of the answers that are made and written."},
	}
	for name, b := range map[string]*admission.Budget{"users": s.budgets.Users, "bodies": s.budgets.Bodies, "answers": s.budgets.Answers} {
		labels := prometheus.Labels{"budget": name}
		list = append(list, prometheus.NewGaugeFunc(held[name], func() float64 { return float64(b.InUse()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "capper_budget_refused_total", Help: "Calls refused with 503, as a budget was short.", ConstLabels: labels,
			}, func() float64 { _, refused, _ := b.Usage(); return float64(refused) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{
				Name: "capper_budget_cut_total", Help: "Calls cut off for others, as their client held most of a budget.", ConstLabels: labels,
			}, func() float64 { _, _, cuts := b.Usage(); return float64(cuts) }))
	}
	return append(list, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_open_connections", Help: "Open connections, of all listeners.",
	}, func() float64 { open, _ := s.connections(); return float64(open) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "capper_connections_closed_total", Help: "Connections closed as there were more than the bound.",
		}, func() float64 { _, closed := s.connections(); return float64(closed) }))
}

// connections counts those of all listeners: open now, and closed for the bound
// since the start.
func (s *Server) connections() (open int, closed int64) {
	s.crowds.Range(func(key, _ any) bool {
		o, c := key.(*admission.Crowd).Usage()
		open, closed = open+o, closed+c
		return true
	})
	return open, closed
}

// expected are the statuses that are counted for each route from the start, as
// 0: what alerts watch must be there before it happens the first time.
var expected = []int{http.StatusOK, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable}

// expectRoute makes the counters of a route.
func (m *metrics) expectRoute(route string) {
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

// expectUsers makes the counters of the policy's segments. Those of segments
// without limits of their own, and of later policies, come with their users.
func (m *metrics) expectUsers(p *capping.Policy) {
	m.expectSegment(api.NoSegment, p.Default)
	for segment, limits := range p.Segments {
		m.expectSegment(answer.SegmentName(segment), limits)
	}
}

func (m *metrics) expectSegment(segment string, limits []capping.Limit) {
	for _, outcome := range []string{"allowed", "replayed", "unavailable"} {
		m.users.WithLabelValues(outcome, segment, "")
	}
	for i := range limits {
		m.users.WithLabelValues("denied", segment, limits[i].Name)
	}
}

func (m *metrics) request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if timed(route) {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

func (m *metrics) decisions(sum *answer.Summary, names []string) {
	sum.EachSegment(names, m.add)
}

func (m *metrics) add(outcome, segment, limit string, users int) {
	if users > 0 {
		m.users.WithLabelValues(outcome, segment, limit).Add(float64(users))
	}
}

// scrape serves GET /metrics.
func (s *Server) scrape(c *call) error {
	promhttp.HandlerFor(s.gatherer, promhttp.HandlerOpts{}).ServeHTTP(c.w, c.r)
	return nil
}
