package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/console"
	"capper/internal/objects"
	"capper/internal/segments"
	"capper/internal/server"
	"capper/internal/server/listen"
)

// service is a running capper: what serve starts, reloads and drains.
type service struct {
	watcher  *config.Watcher
	logger   *slog.Logger
	registry *prometheus.Registry

	segments *segments.Refresher
	capper   *capping.Capper
	api      *server.Server
	servers  []*http.Server
	failed   chan error // a listener ended by itself

	shortened shortened
}

// start brings the service up step by step; what has been started is undone by
// stop, also after an error.
func (s *service) start(ctx context.Context, stop *stops) error {
	cfg := s.watcher.Current()
	if err := s.loadSegments(ctx, cfg.Segments); err != nil {
		return err
	}
	store, err := openStore(ctx, cfg.Store, s.logger, s.registry)
	if err != nil {
		return explainStore(named("open the "+cfg.Store.Kind+" store", err))
	}
	stop.add(func() {
		if err := store.Close(); err != nil {
			s.logger.Error("close the store", "error", err)
		}
	})
	if err := announce(ctx, store, cfg.Policy); err != nil {
		return err
	}
	if store, err = capping.Measure(store, cfg.Store.Kind, s.registry); err != nil {
		return named("measure the store", err)
	}
	s.capper = capping.New(store, func() capping.Segments { return s.segments.Current() }, cfg.Policy, time.Now)
	s.warnUnmatched(s.segments.Current())
	if err := s.newServer(cfg, store); err != nil {
		return err
	}
	stop.background(s.segments.Run)
	s.startReload(stop)
	if err := s.listen(cfg.Server, stop); err != nil {
		return err
	}
	s.api.SetReady(true)
	return nil
}

func (s *service) loadSegments(ctx context.Context, cfg config.Segments) error {
	source, err := objects.Open(ctx, cfg.Source, objects.S3Config{
		Endpoint: cfg.S3.Endpoint, Region: cfg.S3.Region, PathStyle: cfg.S3.PathStyle,
	})
	if err != nil {
		return named("open segments.source", err)
	}
	s.segments = segments.NewRefresher(segments.RefresherConfig{
		Source: source, CacheDir: cfg.CacheDir, Interval: cfg.Refresh,
		Logger: s.logger, Clock: time.Now, Registerer: s.registry, OnSwap: s.swapped,
	})
	if err := s.segments.Load(ctx); err != nil {
		err = named("load segments from "+cfg.Source, err)
		if errors.Is(err, objects.ErrNotFound) {
			return console.Hinted(err, "segmentbuild build --to "+cfg.Source+" --segment NAME=FILE … publishes a first generation")
		}
		return err
	}
	return nil
}

// warn logs what a configuration allows and hardly means.
func (s *service) warn(cfg *config.Config) {
	for _, warning := range cfg.Warnings {
		s.logger.Warn("configuration", "warning", warning)
	}
}

// swapped tells of a generation that goes into use.
func (s *service) swapped(next *segments.Snapshot) {
	before := ""
	if current := s.segments.Current(); current != nil {
		before = current.Generation()
	}
	server.AuditFile(s.logger, "refresh", "accepted", "generation", next.Generation(), "before", before)
	s.warnUnmatched(next)
}

// warnUnmatched logs segments that are configured and not published, and the
// reverse: tolerated, and hardly meant.
func (s *service) warnUnmatched(current *segments.Snapshot) {
	if s.capper == nil {
		return
	}
	for _, problem := range s.problems(current) {
		s.logger.Warn("segments and limits", "problem", problem)
	}
}

// problems is what is odd and tolerated of the limits in force.
func (s *service) problems(current *segments.Snapshot) []string {
	policy := s.capper.Policy()
	return append(unmatched(policy, current), s.shortened.problems(policy, time.Now())...)
}

func unmatched(policy *capping.Policy, current *segments.Snapshot) (list []string) {
	configured, published := policy.Unmatched(current.Names())
	for _, segment := range configured {
		list = append(list, fmt.Sprintf("limits.segments.%s: generation %s has no such segment", segment, current.Generation()))
	}
	for _, segment := range published {
		applies := "limits.default applies"
		if len(policy.Default) == 0 {
			applies = "limits.default has none either, so it is uncapped"
		}
		list = append(list, fmt.Sprintf("segment %s has no limits of its own: %s", segment, applies))
	}
	return list
}

// startReload puts every good change of the configuration file in force.
func (s *service) startReload(stop *stops) {
	reloads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "capper_config_reloads_total", Help: "Changes of the configuration file, by result.",
	}, []string{"result"})
	reloads.WithLabelValues("accepted")
	reloads.WithLabelValues("refused")
	s.registry.MustRegister(reloads)
	apply := func(cfg *config.Config) error {
		if err := announce(context.Background(), s.capper.Store(), cfg.Policy); err != nil {
			return err
		}
		if err := s.api.SetAccess(accessRules(cfg.Server)); err != nil {
			_ = announce(context.Background(), s.capper.Store(), s.capper.Policy()) // as before; that was accepted once
			return err
		}
		s.shortened.note(s.capper.Policy(), cfg.Policy, time.Now())
		s.capper.SetPolicy(cfg.Policy)
		return nil
	}
	report := func(err error) {
		if err != nil {
			reloads.WithLabelValues("refused").Inc()
			s.logger.Error("configuration refused, the one before stays in force", "error", err)
			server.AuditFile(s.logger, "reload", "refused", "version", s.watcher.Current().Version, "error", err)
			return
		}
		reloads.WithLabelValues("accepted").Inc()
		s.logger.Info("configuration in force", "version", s.watcher.Current().Version)
		server.AuditFile(s.logger, "reload", "accepted", "version", s.watcher.Current().Version)
		s.warn(s.watcher.Current())
		s.warnUnmatched(s.segments.Current())
	}
	stop.background(func(ctx context.Context) { s.watcher.Run(ctx, reloadInterval, apply, report) })
}

// endpoint is one listener and what it serves.
type endpoint struct {
	what     string
	handler  http.Handler
	listener net.Listener
}

// listen opens every listener before any serves, so that a wrong address fails
// the start whole.
func (s *service) listen(cfg config.Server, stop *stops) (err error) {
	var secure *tls.Config
	if cfg.TLS.CertFile != "" {
		if secure, err = listen.TLSConfig(cfg.TLS.CertFile, cfg.TLS.KeyFile, s.logger); err != nil {
			return named("load server.tls", err)
		}
		s.registry.MustRegister(listen.CertificateExpiry(secure))
	}
	public, err := s.api.Listen(cfg.Listen)
	if err != nil {
		return err
	}
	endpoints := []endpoint{{"api", s.api.Public(), public}}
	if cfg.AdminListen != "" {
		admin, err := s.api.Listen(cfg.AdminListen)
		if err != nil {
			public.Close()
			return err
		}
		endpoints = append(endpoints, endpoint{"admin", s.api.Admin(), admin})
	}
	s.failed = make(chan error, len(endpoints))
	for _, e := range endpoints {
		s.serve(e, secure, stop)
	}
	return nil
}

func (s *service) serve(e endpoint, secure *tls.Config, stop *stops) {
	hs := s.api.HTTPServer(e.handler, secure)
	s.servers = append(s.servers, hs)
	stop.add(func() { hs.Close() })
	go func() {
		if err := listen.Serve(hs, e.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- named("serve "+e.what, err)
		}
	}()
	s.logger.Info("listening", "what", e.what, "address", e.listener.Addr().String())
}

// drain lets requests in flight finish: not ready first, for as long as a load
// balancer takes to see it, then no new connections, then the wait.
func (s *service) drain(cfg config.Server) error {
	timeout := cfg.StopTimeout
	s.logger.Info("stopping", "delay", cfg.StopDelay.String(), "timeout", timeout.String())
	s.api.BeginStop()
	time.Sleep(cfg.StopDelay)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var errs []error
	for _, hs := range s.servers {
		errs = append(errs, hs.Shutdown(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return named("requests were still in flight after "+timeout.String(), err)
	}
	s.logger.Info("stopped")
	return nil
}
