package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"capper/internal/audit/archive"
	"capper/internal/audit/journal"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/console"
	"capper/internal/messages"
	"capper/internal/objects"
	"capper/internal/pacing"
	"capper/internal/segments"
	"capper/internal/segments/publish"
	"capper/internal/server"
	"capper/internal/trace/otlp"
)

// Config holds the dependencies and settings of a service.
type Config struct {
	// Watcher holds the current configuration and detects changes of the configuration file. Required.
	Watcher *config.Watcher
	// Log receives the log lines in the configured format, from the configured level on. A nil Log discards log lines.
	Log io.Writer
	// Clock is the clock for decisions and for all shown times. A nil Clock means time.Now.
	Clock func() time.Time
	// At each signal from Reload, the service reads the configuration file again and logs the result. A nil Reload
	// never sends a signal.
	Reload <-chan os.Signal
	// NotifySocket is the socket of the service manager, which the environment variable Socket contains. "" means that
	// there is no service manager.
	NotifySocket string

	wrapStore func(capping.Store) capping.Store // for tests
}

// Service is a running capper service. A Service is safe for concurrent use.
type Service struct {
	config    *config.Config // configuration at the start; watcher holds the current configuration
	watcher   *config.Watcher
	clock     func() time.Time
	logger    *slog.Logger
	level     *level         // level of the logger
	exporter  *otlp.Exporter // nil: tracing is disabled
	registry  *prometheus.Registry
	reloads   *prometheus.CounterVec
	wrapStore func(capping.Store) capping.Store
	asked     <-chan os.Signal
	manager   string // socket of the service manager

	segments  *segments.Refresher
	source    objects.Source // location of the segments
	history   *publish.History
	store     capping.Store
	permits   pacing.Store       // the store in the field store
	kept      pacing.RecordStore // the store in the field store
	journal   *journal.Journal   // nil: no audit is configured
	recorded  *archive.Archive   // audit to which the journal writes; nil: no audit is configured
	capper    *capping.Capper
	answers   *messages.Counter // nil: the store keeps no counts of messages
	pacers    *pacing.Pacers
	api       *server.Server
	endpoints []*endpoint
	calls     calls
	failed    chan error // receives the error of a listener that failed

	shortened    shortened
	unsuppressed unsuppressed
	audiences    audiences
	lists        *lists
	silences     atomic.Pointer[[]string] // days on which the current policy's quiet hours forbid every minute
	recent       *console.Series          // counts for pages of the console
	policies     console.Policies

	done     stack
	stopping sync.Once
	stopErr  error
}

// Run runs the service until ctx ends or a listener fails. Run returns after all components of the service have
// stopped.
func Run(ctx context.Context, cfg Config) error {
	s, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	select {
	case err := <-s.Failed():
		return errors.Join(err, s.Stop())
	case <-ctx.Done():
		return s.Stop()
	}
}

// Start starts a service and returns when the service is ready for calls. If a step of the start fails, or ctx ends
// during the start, Start stops the components that it has started.
func Start(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Watcher == nil {
		return nil, errors.New("app: Config.Watcher must be set")
	}
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	s := &Service{
		config: cfg.Watcher.Current(), watcher: cfg.Watcher, clock: cfg.Clock, wrapStore: cfg.wrapStore,
		asked: cfg.Reload, manager: cfg.NotifySocket,
		registry: prometheus.NewRegistry(), reloads: newReloads(), recent: console.NewSeries(cfg.Clock()),
	}
	s.lists = newLists(s.config)
	s.level = New(s.config.Log.Level)
	s.logger = newLogger(cfg.Log, s.config.Log, s.level)
	s.registry.MustRegister(s.reloads, s.refusedConfig(), configuredMemory(s.config), buildInfo(), zoneRules(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.done = stack{logger: s.logger, clock: s.clock}
	s.noteSilences(s.config.Policy)
	s.warn(s.config)
	for _, step := range s.steps() {
		if err := s.done.start(ctx, step); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	return s, nil
}

// Addr returns the address of the API's listener.
func (s *Service) Addr() net.Addr { return s.endpoints[0].listener.Addr() }

// The method Failed returns a channel that receives an error when a network listener fails. After a network listener
// has failed, the service is unusable, and the caller must stop the service.
func (s *Service) Failed() <-chan error { return s.failed }

// Stop finishes the running calls and then stops the service, in named steps with time limits. The error of Stop lists
// the failed steps and the steps that are still running. A later call of Stop waits for the first call and returns the
// same error.
func (s *Service) Stop() error {
	s.stopping.Do(func() { s.stopErr = s.done.stop() })
	return s.stopErr
}

// These constants are generous time limits for the steps of the service's start and stop. Without the time limits, a
// start or stop could hang forever instead of returning an error.
const (
	loadTimeout     = 10 * time.Minute // enough for 135 MB over a slow connection
	openTimeout     = 10 * time.Minute // enough for a recovery after a crash
	announceTimeout = 5 * time.Second
	buildTimeout    = 10 * time.Second
	listenTimeout   = 10 * time.Second
	endTimeout      = 10 * time.Second // for background work
	auditTimeout    = 10 * time.Second // the next start uploads the remaining records
	traceTimeout    = 5 * time.Second  // the remaining spans are lost
	closeTimeout    = time.Minute
)

// The method "steps" returns the steps that start the service, in order. Each step of the start has an action that
// starts a component and an action that stops this component.
func (s *Service) steps() []step {
	cfg := s.config
	var refreshing, watching, counting, bounding, remembering, listing, leasing background
	return []step{
		{up: action{"begin to trace", buildTimeout, s.beginTracing},
			down: action{"send the last spans", traceTimeout, s.endTracing}},
		{up: action{"load segments from " + cfg.Segments.Source, loadTimeout, s.loadSegments}},
		{up: action{"open the " + cfg.Store.Kind + " store", openTimeout, s.openStore},
			down: action{"close the store", closeTimeout, s.closeStore}, unused: true},
		{up: action{"announce the limits", announceTimeout, func(ctx context.Context) error {
			return s.announce(ctx,
				cfg.Policy)
		}}},
		{up: action{"begin the audit", buildTimeout, s.beginAudit},
			down: action{"end the audit", auditTimeout, s.endAudit}},
		{up: action{"build the API", buildTimeout, s.newServer}},
		{up: action{"refresh segments", endTimeout, refreshing.begin(s.refreshSegments)},
			down: action{"stop refreshing segments", endTimeout, refreshing.end}},
		{up: action{"merge and remove API changes of sets", endTimeout, listing.begin(s.keepLists)},
			down: action{"stop merging and removing API changes of sets", endTimeout, listing.end}},
		{up: action{"count the results of calls", endTimeout, counting.begin(s.flushAnswers)},
			down: action{"count the results of the last calls", endTimeout, counting.end}},
		{up: action{"limit the number of permit records", endTimeout, bounding.begin(s.boundRecords)},
			down: action{"count the last permit records", endTimeout, bounding.end}},
		{up: action{"return the permits of ended leases", endTimeout, leasing.begin(s.endLeases)},
			down: action{"stop returning the permits of ended leases", endTimeout, leasing.end}},
		{up: action{"watch the configuration", endTimeout, watching.begin(s.watchConfig)},
			down: action{"stop watching the configuration", endTimeout, watching.end}},
		{up: action{"keep recent counts", endTimeout, remembering.begin(s.keepRecent)},
			down: action{"stop keeping recent counts", endTimeout, remembering.end}},
		{up: action{"listen", listenTimeout, s.listen},
			down: action{"drain the calls", cfg.Server.StopTimeout + s.longestCall(), s.drain}},
		{up: action{"ask for calls", buildTimeout, s.askForCalls},
			down: action{"ask for no more calls", cfg.Server.StopDelay + endTimeout, s.askForNoMore}},
	}
}

// These constants are the memory in bytes that the service needs in addition to its configured bounds; see the section
// "Memory" of docs/operating.md. The constants are for the program itself, for each user in a running call, and for the
// embedded store without its cache.
const (
	memoryOfProgram = 150 << 20
	memoryOfUser    = 64
	memoryOfStore   = 200 << 20
)

// configuredMemory returns a metric with the memory in bytes that the service may use under the given configuration.
func configuredMemory(cfg *config.Config) prometheus.Collector {
	bounds := cfg.Server.Bounds.WithDefaults()
	bytes := 2*(bounds.InFlightBytes+bounds.AnswerBytes) + memoryOfUser*int64(bounds.InFlightUsers) + memoryOfProgram
	if cfg.Store.Kind == config.Embedded {
		bytes += cfg.Store.Embedded.CacheBytes + memoryOfStore
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_memory_configured_bytes",
		Help: "Bytes of memory that the configuration allows, not counting the memory for segments and connections.",
	}, func() float64 { return float64(bytes) })
}
