package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
)

// Server answers the API. It is safe for concurrent use.
type Server struct {
	capper       *capping.Capper
	segments     func() SegmentsStatus
	configStatus func() ConfigStatus
	log          *slog.Logger
	gatherer     prometheus.Gatherer
	metrics      *metrics
	bounds       Bounds
	limiter      Limiter
	clock        func() time.Time

	access        atomic.Pointer[access]
	ready         atomic.Bool
	stopping      atomic.Bool
	hosts         []string
	users         *budget
	bodies        *budget
	answers       *budget
	refusals      map[Code]*valve
	crowds        sync.Map // *crowd of each listener
	adminSeparate bool
}

// New is a server that is not ready yet: SetReady says when it is. It reports
// what is missing in cfg and every fault of cfg.Access.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		capper: cfg.Capper, segments: cfg.Segments, configStatus: cfg.ConfigStatus,
		log: cfg.Logger, gatherer: cfg.Gatherer, bounds: cfg.Bounds,
		limiter: cfg.Limiter, clock: cfg.Clock,
		users:         newBudget(int64(cfg.Bounds.InFlightUsers), cfg.Bounds.CallTimeout),
		bodies:        newBudget(cfg.Bounds.InFlightBytes, cfg.Bounds.CallTimeout),
		answers:       newBudget(cfg.Bounds.AnswerBytes, cfg.Bounds.CallTimeout),
		refusals:      newValves(),
		adminSeparate: cfg.AdminSeparate, hosts: cfg.HostNames,
	}
	if s.metrics, err = newMetrics(cfg.Registerer, s); err != nil {
		return nil, err
	}
	s.metrics.expectUsers(s.capper.Policy())
	return s, s.SetAccess(cfg.Access)
}

// SetAccess puts new keys and rates in force for the calls that begin from now
// on. A faulty one is refused whole: the error lists every fault, and the one
// before stays.
func (s *Server) SetAccess(a Access) error {
	ready, err := newAccess(a)
	if err != nil {
		return err
	}
	s.access.Store(ready)
	s.metrics.expectClients(ready, s.capper.Policy())
	return nil
}

// SetReady says whether /readyz asks for calls. Calls are answered either way.
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// BeginStop asks for no more calls: /readyz says so, and connections are closed
// with the answers of calls that come all the same.
func (s *Server) BeginStop() {
	s.stopping.Store(true)
	s.ready.Store(false)
}

// Public is the API, and with it /metrics and the admin calls unless they have
// a listener of their own.
func (s *Server) Public() http.Handler {
	r := newRouter(s)
	r.handle(http.MethodPost, "/v1/filter", ScopeFilter, s.filter)
	r.handle(http.MethodPost, "/v1/release", ScopeFilter, s.release)
	r.handle(http.MethodGet, "/v1/users/:id", ScopeRead, s.explain)
	r.handle(http.MethodGet, "/v1/limits", ScopeRead, s.limits)
	r.handle(http.MethodGet, "/v1/status", ScopeRead, s.status)
	s.common(r)
	if !s.adminSeparate {
		r.handle(http.MethodDelete, "/v1/users/:id", ScopeAdmin, s.erase)
		r.handle(http.MethodGet, "/metrics", ScopeRead, s.scrape)
	}
	return r
}

// Admin is the calls of operators, for a listener of their own. Metrics and
// profiles are open to whoever reaches it through loopback; elsewhere they need
// a key, like all the rest.
func (s *Server) Admin() http.Handler {
	r := newRouter(s)
	r.handle(http.MethodDelete, "/v1/users/:id", ScopeAdmin, s.erase)
	r.handle(http.MethodGet, "/v1/users/:id", ScopeRead, s.explain)
	r.handle(http.MethodGet, "/v1/limits", ScopeRead, s.limits)
	r.handle(http.MethodGet, "/v1/status", ScopeRead, s.status)
	s.common(r)
	r.handleLocal(http.MethodGet, "/metrics", ScopeRead, s.scrape)
	r.profiles()
	return r
}

func (s *Server) common(r *router) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r.handle(method, "/healthz", scopeNone, s.alive)
		r.handle(method, "/readyz", scopeNone, s.readiness)
		r.handle(method, "/openapi.yaml", scopeNone, s.description)
	}
}

// callContext bounds a call to the store. It does not end when the caller
// goes: what has begun is finished, and the caller asks again with the same
// message id.
func (s *Server) callContext(r *http.Request, users int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), s.bounds.timeout(users))
}
