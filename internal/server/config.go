package server

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/messages"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/server/gate"
	"capper/internal/server/wire"
	"capper/internal/trace"
)

// Config holds the dependencies and settings of a Server.
type Config struct {
	// Capper decides. Required.
	Capper *capping.Capper
	// Generations pins generations, for look-ups and audiences. Nil: there is none that
	// could be asked.
	Generations wire.Pin
	// Audiences are the expressions of the configuration that the policy is of, which was in
	// force a moment ago. It is called by many goroutines. Nil: there are none.
	Audiences func(*capping.Policy) *audience.Named
	// History tells of the generations at the segments' source. Nil: there is none that
	// could be asked.
	History History
	// Journal records calls. Nil: nothing is recorded.
	Journal *journal.Journal
	// Pacers give permits. Nil: none are configured.
	Pacers *pacing.Pacers
	// MessageCounts counts what is answered of each message. Nil: nothing is counted.
	MessageCounts *messages.Counter
	// Audit says to whom a message was sent, for releases of all its sends. Nil: nothing does.
	Audit Audit
	// Records is what was decided before. Nil: nothing is recorded.
	Records AuditRecords
	// Segments and ConfigStatus answer what /v1/status shows. They are called
	// by many goroutines. Nil: nothing is shown.
	Segments     func() api.SegmentsStatus
	ConfigStatus func() api.ConfigStatus
	// Logger takes what callers are not told. Nil: it is discarded.
	Logger *slog.Logger
	// Tracer records spans of requests. Nil: nothing is traced.
	Tracer trace.Tracer
	// TraceMessages: spans tell message ids.
	TraceMessages bool
	// Registerer takes the server's metrics, Gatherer is what /metrics shows.
	// Nil: a registry of the server's own.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Bounds protect the service; zero fields have the defaults written there.
	Bounds gate.Bounds
	// Access says who may call and how fast. Zero: everybody, at any rate,
	// which is for loopback listeners only. SetAccess changes it later.
	Access gate.Rules
	// Limiter keeps the callers' rates, for all instances; while it fails, and
	// when it is nil, each process keeps its own.
	Limiter capping.RateLimiter
	// AdminSeparate: /metrics and the calls of the admin scope are served by
	// Admin only. False: Public serves them too.
	AdminSeparate bool
	// HostNames are the names, beside localhost and loopback addresses, by which
	// a listener on a loopback address may be called.
	HostNames []string
	// Clock must be the one of the Capper. Nil: time.Now.
	Clock func() time.Time
}

// History reads the generations at the source of the segments. A History is safe for concurrent use. Each method ends
// when its context ends, and wraps objects.ErrNotFound when a generation does not exist.
type History interface {
	// List is the newest generations, and the live one.
	List(ctx context.Context) (list []publish.Listing, more bool, err error)
	// Changes compares two generations.
	Changes(ctx context.Context, from, to string) (*publish.Changes, error)
}

var _ History = (*publish.History)(nil)

// noHistory is the History of a service that has no segments source.
type noHistory struct{}

var errNoHistory = errors.New("the location of the segments is unknown")

func (noHistory) List(context.Context) ([]publish.Listing, bool, error) {
	return nil, false, errNoHistory
}

func (noHistory) Changes(context.Context, string, string) (*publish.Changes, error) {
	return nil, errNoHistory
}

func (c Config) withDefaults() (Config, error) {
	if c.Capper == nil {
		return c, errors.New("server: Config.Capper must be set")
	}
	if c.Pacers == nil {
		c.Pacers = pacing.New(nil, &pacing.Policy{Version: c.Capper.Policy().Version}) // which never asks its store
	}
	if c.Generations == nil {
		c.Generations = func(string) (*segments.Snapshot, error) { return nil, &segments.GoneError{} }
	}
	if c.History == nil {
		c.History = noHistory{}
	}
	if c.Audiences == nil {
		c.Audiences = func(*capping.Policy) *audience.Named { return nil }
	}
	if (c.Registerer == nil) != (c.Gatherer == nil) {
		return c, errors.New("server: Config.Registerer and Config.Gatherer must be set together")
	}
	if c.Registerer == nil {
		registry := prometheus.NewRegistry()
		c.Registerer, c.Gatherer = registry, registry
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = slog.New(trace.Handler(c.Logger.Handler()))
	if c.Segments == nil {
		c.Segments = func() api.SegmentsStatus { return api.SegmentsStatus{} }
	}
	if c.ConfigStatus == nil {
		c.ConfigStatus = func() api.ConfigStatus { return api.ConfigStatus{} }
	}
	c.Bounds = c.Bounds.WithDefaults()
	if c.Limiter == nil {
		c.Limiter = gate.NewLimiter(c.Clock)
		return c, nil
	}
	var err error
	c.Limiter, err = gate.NewSteadyLimiter(c.Limiter, c.Clock, c.Logger, c.Registerer)
	return c, err
}
