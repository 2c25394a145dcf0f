package app

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/config"
	"capper/internal/trace"
	"capper/internal/trace/otlp"
	"capper/internal/version"
	"capper/internal/zones"
)

// buildInfo returns a metric that is always 1 and whose labels identify the running build.
func buildInfo() prometheus.Collector {
	b := version.Current()
	labels := prometheus.Labels{"version": b.Version, "revision": b.Commit, "commit_date": b.Date, "go_version": b.Go}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_build_info",
		Help: "Always 1; the labels show the version and the commit of the running program.", ConstLabels: labels,
	}, func() float64 { return 1 })
}

// zoneRules returns a metric that is always 1 and whose label names the release of the time zone database in the
// program.
func zoneRules() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "capper_zone_rules_info",
		Help:        "Always 1; the label 'version' shows the release of the program's time zone database.",
		ConstLabels: prometheus.Labels{"version": zones.Version()},
	}, func() float64 { return 1 })
}

// beginTracing opens the exporter of trace spans, if the configuration enables tracing.
func (s *Service) beginTracing(ctx context.Context) (err error) {
	if s.config.Tracing.Endpoint == "" {
		return nil
	}
	cfg := s.config.Tracing
	cfg.Logger, cfg.Registerer = s.logger, s.registry
	cfg.Version = version.Current().Version
	s.exporter, err = otlp.Open(ctx, cfg)
	return err
}

// endTracing sends the last trace spans. If sending the spans fails, endTracing only logs a warning.
func (s *Service) endTracing(ctx context.Context) error {
	if s.exporter == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, traceTimeout-time.Second)
	defer cancel()
	if err := s.exporter.Close(ctx); err != nil {
		s.logger.Warn("the last trace spans were not sent to the collector", "error", err)
	}
	return nil
}

func newLogger(to io.Writer, cfg config.Log, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(trace.Handler(slog.NewJSONHandler(to, options)))
	}
	return slog.New(trace.Handler(slog.NewTextHandler(to, options)))
}
