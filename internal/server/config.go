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
	// IDs converts the user ids of callers to the 64-bit numbers that identify users in the Capper. A nil IDs means
	// dense ids (32-bit numbers). Journal, Audit and Records must be nil unless the ids are dense.
	IDs *ids.Scheme
	// Generations keeps segments generations (published versions) in memory for look-ups and audiences. Nil means that
	// the service has no segments.
	Generations wire.Pin
	// Audiences returns the named audience expressions of a current or recent policy. The function must be safe for
	// concurrent use. Nil means that no expressions are configured.
	Audiences func(*capping.Policy) *audience.Named
	// Sets returns the configured rules of sets. The function must be safe for concurrent use. Nil means that no set
	// has a rule.
	Sets func() live.Rules
	// A History reads the published generations of the segments. Nil means that the configuration has no location of
	// segments.
	History History
	// Journal writes API calls to the audit. Nil means that no audit is configured.
	Journal *journal.Journal
	// Pacers grants permits. Nil means that no pacers are configured.
	Pacers *pacing.Pacers
	// MessageCounts counts the decisions about each message. Nil means that messages are not counted.
	MessageCounts *messages.Counter
	// Audit finds the users who received a message, for calls that release whole messages. With a nil Audit, the server
	// refuses these calls.
	Audit Audit
	// Records reads earlier decisions from the audit. Nil means that no audit is configured.
	Records AuditRecords
	// Pressure counts the messages per person in the audit. Nil means that no audit is configured.
	Pressure Pressure
	// Replay decides the recorded calls of the audit again under other limits. Nil means that no audit is configured.
	Replay Replay
	// Segments and ConfigStatus return the fields segments and config of /v1/status. Both functions must be safe for
	// concurrent use. With a nil function, the field stays empty.
	Segments     func() api.SegmentsStatus
	ConfigStatus func() api.ConfigStatus
	// Logger receives the errors that responses do not show. A nil Logger discards all log lines.
	Logger *slog.Logger
	// Tracer records spans of requests. A nil Tracer records no spans.
	Tracer *trace.Tracer
	// TraceMessages adds message ids to the spans.
	TraceMessages bool
	// Registerer receives the server's metrics, and Gatherer returns the metrics of /metrics. If a field is nil, the
	// server uses a registry of its own.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Bounds limit the load that callers can cause. A zero field of Bounds means the default value.
	Bounds gate.Bounds
	// Access holds the API keys and the rates of clients. The zero value lets everybody call at any rate, which is
	// suitable for loopback listeners only. SetAccess replaces the rules later.
	Access gate.Rules
	// Limiter enforces the callers' rates over all instances. While Limiter fails, or when it is nil, each process
	// enforces the rates alone.
	Limiter capping.RateLimiter
	// AdminSeparate says whether only the handler Admin serves /metrics and the calls of the scope admin. If
	// AdminSeparate is false, the handler Public serves these paths too.
	AdminSeparate bool
	// HostNames lists the accepted host names of a loopback listener, in addition to localhost and loopback addresses.
	HostNames []string
	// Clock must be the same clock as in the Capper. Nil means time.Now.
	Clock func() time.Time
}

// A History lists and compares the segments generations that were published. A History is safe for concurrent use. Each
// method of a History returns as soon as its context ends. If a segments generation (published version) does not exist,
// the error wraps objects.ErrNotFound.
type History interface {
	// List returns the newest generations and the generation in use at the location.
	List(ctx context.Context) (list []publish.Listing, more bool, err error)
	// Changes compares two generations.
	Changes(ctx context.Context, from, to string) (*publish.Changes, error)
}

var _ History = (*publish.History)(nil)

// noHistory is the History of a service without a configured location of segments.
type noHistory struct{}

var errNoHistory = errors.New("the location of the published segments is unknown")

func (noHistory) List(context.Context) ([]publish.Listing, bool, error) {
	return nil, false, errNoHistory
}

func (noHistory) Changes(context.Context, string, string) (*publish.Changes, error) {
	return nil, errNoHistory
}

// ofKind returns a function that works like "pin", and also checks that the segments generation has the same kind of
// user ids as the server. In a segments generation with another kind of ids, the same id number could belong to a
// different user.
func ofKind(scheme *ids.Scheme, pin wire.Pin) wire.Pin {
	kind, check := ids.Dense, ""
	if scheme != nil {
		kind, check = scheme.Kind(), scheme.Check()
	}
	return func(name string) (*segments.Snapshot, error) {
		s, err := pin(name)
		if err == nil && (s.IDs().Kind() != kind || s.IDs().Check() != check) {
			return nil, fmt.Errorf("generation (published version) %s does not fit this service: "+
				"the generation has ids of the kind %s (fingerprint of the hash key: %q), "+
				"but the service has ids of the kind %s (%q)",
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
		c.Pacers = pacing.New(nil, &pacing.Policy{Version: c.Capper.Policy().Version}) // never calls its store
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
