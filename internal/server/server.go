package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/pacing"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
	"capper/internal/trace"
)

// Server answers the API. It is safe for concurrent use.
type Server struct {
	capper        *capping.Capper
	journal       *journal.Journal
	pacers        *pacing.Pacers
	counter       *messages.Counter      // nil: nothing is counted
	imported      *capping.MessageMemory // messages whose sends were made elsewhere
	messages      Messages
	past          auditReader
	finder        *wire.Finder
	audiences     func(*capping.Policy) *audience.Named
	history       History
	segments      func() api.SegmentsStatus
	configStatus  func() api.ConfigStatus
	log           *slog.Logger
	gatherer      prometheus.Gatherer
	metrics       *Metrics
	bounds        gate.Bounds
	limiter       capping.RateLimiter
	clock         func() time.Time
	tracer        trace.Tracer // nil: nothing is traced
	traceMessages bool         // spans tell message ids

	access        atomic.Pointer[gate.Control]
	ready         atomic.Bool
	stopping      atomic.Bool
	hosts         []string
	budgets       *gate.Budgets
	bodies        receiver
	smallBodies   receiver // of calls without users
	refusals      map[api.Code]*logBound
	listeners     gate.Listeners
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
		capper: cfg.Capper, pacers: cfg.Pacers, journal: cfg.Journal, counter: cfg.MessageCounts,
		finder: wire.NewFinder(cfg.Generations), audiences: cfg.Audiences,
		history: cfg.History, segments: cfg.Segments, configStatus: cfg.ConfigStatus,
		log: cfg.Logger, gatherer: cfg.Gatherer, bounds: cfg.Bounds,
		limiter: cfg.Limiter, clock: cfg.Clock, tracer: cfg.Tracer, traceMessages: cfg.TraceMessages,
		budgets:       gate.NewBudgets(cfg.Bounds),
		refusals:      newLogBounds(),
		adminSeparate: cfg.AdminSeparate, hosts: cfg.HostNames,
	}
	s.imported = capping.NewMessageMemory(cfg.Clock)
	s.past = auditReader{Records: cfg.Records, Policy: s.capper.Policy}
	s.messages = Messages{Capper: cfg.Capper, Clock: cfg.Clock, Audit: cfg.Audit}
	if cfg.MessageCounts != nil {
		s.messages.Counts = cfg.MessageCounts
	}
	s.bodies = receiver{Bounds: s.bounds, Budgets: s.budgets, Remedy: "split the batch"}
	s.smallBodies = s.bodies
	s.smallBodies.Remedy = "this call lists no users, so its body can be smaller"
	s.smallBodies.Bounds.BodyBytes = min(s.bounds.BodyBytes, smallBody)
	if s.metrics, err = newMetrics(cfg.Registerer, s.budgets, &s.listeners, s.capper.Policy, s.pacers,
		s.clock); err != nil {
		return nil, err
	}
	return s, errors.Join(cfg.Registerer.Register(s.readyGauge()), s.SetAccess(cfg.Access))
}

// SetAccess puts new keys and rates in force for the calls that begin from now
// on. A faulty one is refused whole: the error lists every fault, and the one
// before stays.
func (s *Server) SetAccess(rules gate.Rules) error {
	ready, err := gate.New(rules)
	if err != nil {
		return err
	}
	s.access.Store(ready)
	s.metrics.Clients.Follow(ready, s.capper.Policy())
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
	s.routeCalls(r)
	s.routeReads(r)
	s.routeCommon(r)
	if !s.adminSeparate {
		s.routeRemovals(r)
		r.handle(http.MethodGet, "/metrics", gate.ScopeRead, s.scrape)
	}
	return r
}

// Admin is the calls of operators, for a listener of their own. Metrics and
// profiles are open to whoever reaches it through loopback; elsewhere they need
// a key, like all the rest.
func (s *Server) Admin() http.Handler {
	r := newRouter(s)
	s.routeRemovals(r)
	s.routeReads(r)
	s.routeCommon(r)
	r.handleLocal(http.MethodGet, "/metrics", gate.ScopeRead, s.scrape)
	r.routeProfiles()
	return r
}

// Inside is every call of the API, for the process itself to make: it must not be
// served. gate.Inside says in a request's context for whom it is made.
func (s *Server) Inside() http.Handler {
	r := newRouter(s)
	s.routeCalls(r)
	s.routeReads(r)
	s.routeRemovals(r)
	return r
}

// Counted calls yield with what was counted since the start, as Metrics.Each does.
func (s *Server) Counted(yield func(what, of string, n float64)) { s.metrics.Each(yield) }

// Limits is the policy in force, as GET /v1/limits tells it.
func (s *Server) Limits() *api.Policy { return wire.Policy(s.capper.Policy(), s.capper.Widening()) }

// Access is who may call, as it is configured now.
func (s *Server) Access() *gate.Control { return s.access.Load() }

func (s *Server) routeCalls(r *router) {
	r.handle(http.MethodPost, "/v1/filter", gate.ScopeFilter, s.filter)
	r.handle(http.MethodPost, "/v1/release", gate.ScopeFilter, s.release)
	r.handle(http.MethodPost, "/v1/messages/:id/release", gate.ScopeFilter, s.releaseMessage,
		nameParameters...)
	r.handle(http.MethodPost, "/v1/permits", gate.ScopeFilter, s.permits)
	r.handle(http.MethodPost, "/v1/segments/lookup", gate.ScopeRead, s.lookup)
	r.handle(http.MethodPost, "/v1/audience/count", gate.ScopeRead, s.countAudience)
	r.handle(http.MethodPost, "/v1/forecast", gate.ScopeRead, s.forecast)
	r.handle(http.MethodPost, "/v1/sends/check", gate.ScopeRead, s.checkSends, nameParameters...)
}

func (s *Server) routeReads(r *router) {
	r.handle(http.MethodGet, "/v1/users/:id", gate.ScopeRead, s.explain)
	r.handle(http.MethodGet, "/v1/users/:id/decisions", gate.ScopeRead, s.decisions, "since")
	r.handle(http.MethodGet, "/v1/decisions", gate.ScopeRead, s.decidedUsers, "message_id", "channel", "namespace")
	r.handle(http.MethodGet, "/v1/messages", gate.ScopeRead, s.listMessages, listParameters...)
	r.handle(http.MethodGet, "/v1/messages/:id", gate.ScopeRead, s.messageCounts, nameParameters...)
	r.handle(http.MethodGet, "/v1/limits", gate.ScopeRead, s.limits)
	r.handle(http.MethodGet, "/v1/pacers", gate.ScopeRead, s.listPacers)
	r.handle(http.MethodGet, "/v1/pacers/:name", gate.ScopeRead, s.pacer)
	r.handle(http.MethodGet, "/v1/status", gate.ScopeRead, s.status)
	r.handle(http.MethodGet, "/v1/segments", gate.ScopeRead, s.listSegments, "generation")
	r.handle(http.MethodGet, "/v1/generations", gate.ScopeRead, s.listGenerations)
	r.handle(http.MethodGet, "/v1/generations/:generation/changes", gate.ScopeRead, s.generationChanges, "since")
	r.handle(http.MethodGet, "/v1/segments/:name/members", gate.ScopeRead, s.members, "after", "max", "generation")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r.handle(method, "/v1/segments/:name/bitmap", gate.ScopeRead, s.segmentBitmap, "generation")
	}
}

func (s *Server) routeRemovals(r *router) {
	r.handle(http.MethodPost, "/v1/sends", gate.ScopeAdmin, s.importSends, nameParameters...)
	r.handle(http.MethodDelete, "/v1/users/:id", gate.ScopeAdmin, s.erase)
	r.handle(http.MethodDelete, "/v1/pacers/:name", gate.ScopeAdmin, s.forgetPacer)
	r.handle(http.MethodPost, "/v1/backup", gate.ScopeAdmin, s.backup)
	r.handle(http.MethodPost, "/v1/store/accept", gate.ScopeAdmin, s.acceptLoss)
}

func (s *Server) routeCommon(r *router) {
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r.handle(method, "/healthz", gate.ScopeNone, s.alive)
		r.handle(method, "/readyz", gate.ScopeNone, s.readiness)
		r.handle(method, "/openapi.yaml", gate.ScopeNone, s.description)
	}
}

// Listen opens a TCP listener on host:port. An address that others than this
// machine can reach is refused unless the server has API keys.
func (s *Server) Listen(addr string) (net.Listener, error) {
	return gate.Open(addr, s.access.Load().HasKeys())
}

// HTTPServer serves h, Public or Admin, with explicit time-outs and bounds of
// headers and connections. tlsConfig is from gate.TLSConfig; nil: plain HTTP.
func (s *Server) HTTPServer(h http.Handler, tlsConfig *tls.Config) *http.Server {
	return gate.HTTPServer(h, tlsConfig, s.bounds, s.listeners.Another(s.bounds.Connections), s.log)
}

// callContext bounds a call to the store. It does not end when the caller
// goes: what has begun is finished, and the caller asks again with the same
// message id.
func (s *Server) callContext(c *call, users int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.ctx), s.bounds.Timeout(users))
}
