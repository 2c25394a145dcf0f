package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/client/api"
	"capper/internal/audience"
	"capper/internal/audit"
	"capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/live"
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
	// Capper decides about users. Required.
	Capper *capping.Capper
	// IDs turns the ids of users into the users of the Capper. Nil: the ids are dense. With other ids than dense ones
	// Journal, Audit and Records must be nil.
	IDs *ids.Scheme
	// Generations pins generations for look-ups and audiences. Nil: the service has no segments.
	Generations wire.Pin
	// Audiences returns the named expressions that belong to a current or recent policy. It is safe for concurrent
	// use. Nil: no expressions are configured.
	Audiences func(*capping.Policy) *audience.Named
	// Sets returns the configured rules of sets. It is safe for concurrent use. Nil: no set has a rule.
	Sets func() live.Rules
	// History reads the generations at the segments source. Nil: the service has no source.
	History History
	// Journal records calls. Nil: nothing is recorded.
	Journal *journal.Journal
	// Pacers grants permits. Nil: no pacers are configured.
	Pacers *pacing.Pacers
	// MessageCounts counts the answers about each message. Nil: nothing is counted.
	MessageCounts *messages.Counter
	// Audit finds the users to whom a message was sent, for releases of whole messages. Nil: such releases are
	// refused.
	Audit Audit
	// Records reads earlier decisions. Nil: nothing is recorded.
	Records AuditRecords
	// Pressure counts messages per person from the audit. Nil: nothing is recorded.
	Pressure Pressure
	// Replay replays the audit under other limits. Nil: nothing is recorded.
	Replay Replay
	// Segments and ConfigStatus return the parts of /v1/status with these names. They are safe for concurrent use.
	// Nil: the status leaves the part empty.
	Segments     func() api.SegmentsStatus
	ConfigStatus func() api.ConfigStatus
	// Logger receives the errors that callers do not see. Nil: log lines are discarded.
	Logger *slog.Logger
	// Tracer records spans of requests. Nil: nothing is traced.
	Tracer *trace.Exporter
	// TraceMessages adds message ids to spans.
	TraceMessages bool
	// Registerer receives the server's metrics, and Gatherer returns the metrics of /metrics. Nil: the server uses
	// its own registry.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Bounds limit the load of callers. A zero field stands for its default.
	Bounds gate.Bounds
	// Access holds the API keys and the rates of clients. Zero: everybody may call at any rate, which is for loopback
	// listeners only. SetAccess changes it later.
	Access gate.Rules
	// Limiter keeps the callers' rates for all instances. While it fails, and when it is nil, each process keeps its
	// own rates.
	Limiter capping.RateLimiter
	// AdminSeparate: only Admin serves /metrics and the calls of the scope admin. False: Public serves them too.
	AdminSeparate bool
	// HostNames lists the accepted host names of a loopback listener, besides localhost and loopback addresses.
	HostNames []string
	// Clock must be the clock of the Capper. Nil: time.Now.
	Clock func() time.Time
}

// History reads the generations at the source of the segments. A History is safe for concurrent use. Each method ends
// when its context ends, and wraps objects.ErrNotFound when a generation does not exist.
type History interface {
	// List returns the newest generations and the live one.
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

// ofKind returns pin with a check that a generation has the ids of the server, so that no number is taken for that of
// another user.
func ofKind(scheme *ids.Scheme, pin wire.Pin) wire.Pin {
	kind, check := ids.Dense, ""
	if scheme != nil {
		kind, check = scheme.Kind(), scheme.Check()
	}
	return func(name string) (*segments.Snapshot, error) {
		s, err := pin(name)
		if err == nil && (s.IDs().Kind() != kind || s.IDs().Check() != check) {
			return nil, fmt.Errorf("generation %s has ids of the kind %s with the check %q, "+
				"but this deployment has ids of the kind %s with the check %q",
				s.Generation(), s.IDs().Kind(), s.IDs().Check(), kind, check)
		}
		return s, err
	}
}

func (c Config) withDefaults() (Config, error) {
	if c.Capper == nil {
		return c, errors.New("server: Config.Capper must be set")
	}
	if c.IDs != nil && c.IDs.Kind() == ids.Dense {
		c.IDs = nil
	}
	if c.Journal != nil {
		if err := c.Journal.IDs.Same(audit.IDsOf(c.IDs)); err != nil {
			return c, fmt.Errorf("server: Config.Journal: %w", err)
		}
	}
	if c.Pacers == nil {
		c.Pacers = pacing.New(nil, &pacing.Policy{Version: c.Capper.Policy().Version}) // which never asks its store
	}
	if c.Generations == nil {
		c.Generations = func(string) (*segments.Snapshot, error) { return nil, &segments.GoneError{} }
	}
	c.Generations = ofKind(c.IDs, c.Generations)
	if c.History == nil {
		c.History = noHistory{}
	}
	if c.Sets == nil {
		c.Sets = func() live.Rules { return nil }
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
