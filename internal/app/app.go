package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"capper/internal/config"
)

// reloadInterval is how often the configuration file is looked at.
const reloadInterval = time.Second

// Run serves what the watcher's configuration says until ctx ends, and logs to
// logTo: start in order, stop in reverse.
func Run(ctx context.Context, watcher *config.Watcher, logTo io.Writer) error {
	cfg := watcher.Current()
	logger := newLogger(logTo, cfg.Log)
	registry := prometheus.NewRegistry()
	registry.MustRegister(buildInfo(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	var stop stops
	defer stop.run()
	s := &service{watcher: watcher, logger: logger, registry: registry}
	s.warn(cfg)
	if err := s.start(ctx, &stop); err != nil {
		return err
	}
	select {
	case err := <-s.failed:
		return err
	case <-ctx.Done():
		return s.drain(cfg.Server)
	}
}

// buildInfo is a metric that is always 1 and says in labels what runs.
func buildInfo() prometheus.Collector {
	labels := prometheus.Labels{"version": "unknown", "revision": "unknown", "go_version": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		labels["version"] = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				labels["revision"] = setting.Value
			}
		}
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "capper_build_info", Help: "1, with what was built.", ConstLabels: labels,
	}, func() float64 { return 1 })
}

func newLogger(to io.Writer, cfg config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// stops are the steps that undo a start, run last in first out.
type stops []func()

func (s *stops) add(step func()) { *s = append(*s, step) }

func (s *stops) run() {
	for i := len(*s) - 1; i >= 0; i-- {
		(*s)[i]()
	}
	*s = nil
}

// background runs work until the step that stops it, which waits for its end.
func (s *stops) background(work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
	s.add(func() {
		cancel()
		<-done
	})
}

// named adds what was being done to an error.
func named(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
