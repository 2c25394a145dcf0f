package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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
	"capper/internal/ids"
	"capper/internal/live"
	"capper/internal/messages"
	"capper/internal/pacing"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
	"capper/internal/trace"
)

// A Server handles the calls of the HTTP API, and is safe for concurrent use.
type Server struct {
	capper        *capping.Capper
	ids           *ids.Scheme // nil: the ids are dense
	journal       *journal.Journal
	pacers        *pacing.Pacers
	counter       *messages.Counter      // nil: messages are not counted
	imported      *capping.MessageMemory // messages whose sends were imported
	messages      Messages
	activities    Activities
	past          auditReader
	countPressure Pressure
	pressures     pressures
	replay        Replay
	replays       turns
	finder        *wire.Finder
	audiences     func(*capping.Policy) *audience.Named
	sets          func() live.Rules
	history       History
	segments      func() api.SegmentsStatus
	configStatus  func() api.ConfigStatus
	log           *slog.Logger
	gatherer      prometheus.Gatherer
	metrics       *Metrics
	bounds        gate.Bounds
	limiter       capping.RateLimiter
	clock         func() time.Time
	tracer        *trace.Tracer // nil: nothing is traced
	traceMessages bool          // spans contain message ids

	access        atomic.Pointer[gate.Control]
	ready         atomic.Bool
	stopping      atomic.Bool
	hosts         []string
	budgets       *gate.Budgets
	bodies        receiver
	smallBodies   receiver // receiver of bodies without users
	permitBodies  receiver // receiver of calls for permits
	refusals      map[api.Code]*logBound
	fullLog       logBound // limits log lines about sets near their maximum number of changes
	guesses       *gate.Guesses
	listeners     gate.Listeners
	adminSeparate bool
}

// New returns a server. After New, the path /readyz reports "not ready" until SetReady(true) is called. The error of
// New lists every missing field of cfg and every fault of cfg.Access.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		capper: cfg.Capper, ids: cfg.IDs, pacers: cfg.Pacers, journal: cfg.Journal, counter: cfg.MessageCounts,
		finder: wire.NewFinder(cfg.Generations), audiences: cfg.Audiences, sets: cfg.Sets,
		history: cfg.History, segments: cfg.Segments, configStatus: cfg.ConfigStatus,
		log: cfg.Logger, gatherer: cfg.Gatherer, bounds: cfg.Bounds,
		limiter: cfg.Limiter, clock: cfg.Clock, tracer: cfg.Tracer, traceMessages: cfg.TraceMessages,
		budgets:       gate.NewBudgets(cfg.Bounds),
		refusals:      newLogBounds(),
		guesses:       gate.NewGuesses(cfg.Clock),
		adminSeparate: cfg.AdminSeparate, hosts: cfg.HostNames,
	}
	s.imported = capping.NewMessageMemory(cfg.Clock)
	s.past = auditReader{Records: cfg.Records, Policy: s.capper.Policy}
	s.countPressure = cfg.Pressure
	s.replay = cfg.Replay
	s.activities.clock = cfg.Clock
	s.messages = Messages{Capper: cfg.Capper, Clock: cfg.Clock, Audit: cfg.Audit,
		Past: &s.past}
	if cfg.MessageCounts != nil {
		s.messages.Counts, s.activities.counts = cfg.MessageCounts, cfg.MessageCounts
	}
	s.bodies = receiver{Bounds: s.bounds, Budgets: s.budgets, Remedy: "split the batch"}
	s.smallBodies = s.bodies
	s.smallBodies.Remedy = "this call lists no users, so its body can be smaller"
	s.smallBodies.Bounds.BodyBytes = min(s.bounds.BodyBytes, smallBody)
	s.permitBodies = s.smallBodies
	s.permitBodies.Remedy = fmt.Sprintf("a call for permits needs only a number of permits and the names of 1 to %d "+
		"pacers", api.MaxPacers)
	_, shared := capping.As[capping.Accepter](s.capper.Store()) // only a store on servers can accept a loss
	if s.metrics, err = newMetrics(cfg.Registerer, s.budgets, &s.listeners, s.capper.Policy, s.pacers,
		newSetMetrics(s.liveSizes, s.sets, s.clock), s.clock, !shared); err != nil {
		return nil, err
	}
	s.pacers.OnReturn(s.metrics.Pacers.CountReturned)
	return s, errors.Join(cfg.Registerer.Register(s.readyGauge()), s.SetAccess(cfg.Access))
}

// SetAccess replaces the API keys and the rates of clients, for all calls that begin later. If the new rules contain
// faults, SetAccess changes nothing and returns an error that lists all faults.
func (s *Server) SetAccess(rules gate.Rules) error {
	ready, err := gate.New(rules)
	if err != nil {
		return err
	}
	s.access.Store(ready)
	s.metrics.Clients.Follow(ready, s.capper.Policy())
	return nil
}

// SetReady sets whether /readyz reports "ready". The server processes calls even when /readyz reports "not ready".
func (s *Server) SetReady(ready bool) { s.ready.Store(ready) }

// BeginStop prepares the shutdown: /readyz then reports "not ready", and the server closes each connection after the
// next response on it.
func (s *Server) BeginStop() {
	s.stopping.Store(true)
	s.ready.Store(false)
}

// Public returns the handler of the API. The handler of the API also serves /metrics and the admin calls, unless the
// configuration has a separate listener for them.
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

// Admin returns the handler of the admin calls for a separate listener. If the request comes from a program on the
// same machine, metrics and profiles need no API key. All other calls need a key.
func (s *Server) Admin() http.Handler {
	r := newRouter(s)
	s.routeRemovals(r)
	s.routeReads(r)
	s.routeCommon(r)
	r.handleLocal(http.MethodGet, "/metrics", gate.ScopeRead, s.scrape)
	r.routeProfiles()
	return r
}

// The method Inside returns a handler that serves all API calls, for callers within the process, such as the console. A
// network listener must not serve the handler that Inside returns. The function gate.Inside adds the visitor's API key
// to the context of a request.
func (s *Server) Inside() http.Handler {
	r := newRouter(s)
	s.routeCalls(r)
	s.routeReads(r)
	s.routeRemovals(r)
	return r
}

// The method Counted calls the function "yield" with the value of every counter since the start of the process; see
// Metrics.Each.
func (s *Server) Counted(yield func(what, of string, n float64)) { s.metrics.Each(yield) }

// Limits returns the current policy in the form in which GET /v1/limits returns it.
func (s *Server) Limits() *api.Policy { return wire.Policy(s.capper.Policy(), s.capper.Widening()) }

// Access returns the current API keys and client rates.
func (s *Server) Access() *gate.Control { return s.access.Load() }

func (s *Server) routeCalls(r *router) {
	r.handle(http.MethodPost, "/v1/filter", gate.ScopeFilter, s.filter)
	r.handle(http.MethodPost, "/v1/release", gate.ScopeFilter, s.release)
	r.handle(http.MethodPost, "/v1/messages/:id/release", gate.ScopeFilter, s.releaseMessage,
		nameParameters...)
	r.handle(http.MethodPut, "/v1/messages/:id", gate.ScopeFilter, s.setTitle, nameParameters...)
	r.handle(http.MethodPost, "/v1/permits", gate.ScopeFilter, s.permits)
	r.handle(http.MethodPost, "/v1/permits/return", gate.ScopeFilter, s.returnPermits)
	r.handle(http.MethodPost, "/v1/sets/:set/members", gate.ScopeLists, s.changeSet)
	r.handle(http.MethodPost, "/v1/segments/lookup", gate.ScopeRead, s.lookup)
	r.handle(http.MethodPost, "/v1/audience/count", gate.ScopeRead, s.countAudience)
	r.handle(http.MethodPost, "/v1/forecast", gate.ScopeRead, s.forecast)
	r.handle(http.MethodPost, "/v1/whatif", gate.ScopeRead, s.whatIf)
	r.handle(http.MethodPost, "/v1/sends/check", gate.ScopeRead, s.checkSends, nameParameters...)
}

func (s *Server) routeReads(r *router) {
	r.handle(http.MethodGet, "/v1/users/:id", gate.ScopeRead, s.explain)
	r.handle(http.MethodGet, "/v1/users/:id/decisions", gate.ScopeRead, s.decisions, "since")
	r.handle(http.MethodGet, "/v1/decisions", gate.ScopeRead, s.decidedUsers, "message_id", "channel", "namespace")
	r.handle(http.MethodGet, "/v1/pressure", gate.ScopeRead, s.pressure, pressureParameters...)
	r.handle(http.MethodGet, "/v1/activity", gate.ScopeRead, s.activity, activityParameters...)
	r.handle(http.MethodGet, "/v1/messages", gate.ScopeRead, s.listMessages, listParameters...)
	r.handle(http.MethodGet, "/v1/messages/:id", gate.ScopeRead, s.messageCounts, oneParameters...)
	r.handleAny(http.MethodGet, "/v1/ids", s.describeIDs)
	r.handle(http.MethodGet, "/v1/limits", gate.ScopeRead, s.limits)
	r.handle(http.MethodGet, "/v1/pacers", gate.ScopeRead, s.listPacers)
	r.handle(http.MethodGet, "/v1/pacers/:name", gate.ScopeRead, s.pacer, logParameters...)
	r.handle(http.MethodGet, "/v1/status", gate.ScopeRead, s.status)
	r.handle(http.MethodGet, "/v1/segments", gate.ScopeRead, s.listSegments, "generation")
	r.handleEither(http.MethodGet, "/v1/sets", s.listSets)
	r.handleEither(http.MethodGet, "/v1/sets/:set/members", s.setMembers, "since", "limit", "cursor")
	r.handle(http.MethodGet, "/v1/generations", gate.ScopeRead, s.listGenerations)
	r.handle(http.MethodGet, "/v1/generations/:generation/changes", gate.ScopeRead, s.generationChanges, "since")
	r.handle(http.MethodGet, "/v1/segments/:name/members", gate.ScopeRead, s.members, "after", "max", "generation")
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r.handle(method, "/v1/segments/:name/bitmap", gate.ScopeRead, s.segmentBitmap, "generation")
	}
}

func (s *Server) routeRemovals(r *router) {
	r.handle(http.MethodPost, "/v1/sends", gate.ScopeAdmin, s.importSends, nameParameters...)
	r.handle(http.MethodDelete, "/v1/users/:id", gate.ScopeAdmin, s.erase, "sets")
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

// Listen opens a TCP listener on host:port. If no API keys are configured, Listen returns an error for an address
// that other machines can reach.
func (s *Server) Listen(addr string) (net.Listener, error) {
	return gate.Open(addr, s.access.Load().HasKeys())
}

// HTTPServer returns an HTTP server for the handler Public or Admin, with time-outs and with limits on headers and
// connections. The argument tlsConfig comes from the function gate.TLSConfig; nil means plain HTTP.
func (s *Server) HTTPServer(h http.Handler, tlsConfig *tls.Config) *http.Server {
	return gate.HTTPServer(h, tlsConfig, s.bounds, s.listeners.Another(s.bounds.Connections), s.log)
}

// callContext returns a context with the time limit of a call to the store. After a disconnect of the caller, the store
// finishes what it has started and begins nothing more. The caller can repeat the API call with the same message id.
func (s *Server) callContext(c *call, users int) (context.Context, context.CancelFunc) {
	gone := c.ctx.Done()
	if gate.HasLeft(c.ctx) {
		gone = closed
	}
	return context.WithTimeout(capping.WithCaller(context.WithoutCancel(c.ctx),
		capping.Caller{Gone: gone, Asked: c.asked}), s.bounds.Timeout(users))
}

// The variable "closed" is a closed channel.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
