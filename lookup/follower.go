package lookup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/audience"
	"capper/internal/objects"
	"capper/internal/segments"
)

// ErrNothingPublished reports that no segments have ever been published to the source. Callers recognise this error
// with errors.Is.
var ErrNothingPublished = errors.New("no segments have been published at this location")

// A Follower keeps the live generation (published version in use) of a source in memory. Until Close, the Follower
// replaces its generation by newer ones. A Follower is safe for concurrent use.
type Follower struct {
	refresher *segments.Refresher
	engine    *audience.Engine
	named     *audience.Named
	current   atomic.Pointer[Generation]
	stop      context.CancelFunc
	running   sync.WaitGroup
}

// The function Follow loads the live generation (published version in use) from the source, or from the cache if the
// source fails. After the first load, the Follower checks the source for new generations in the background until Close.
// The argument ctx of Follow limits the first load, but not the later checks.
func Follow(ctx context.Context, cfg Config) (*Follower, error) {
	f, err := open(ctx, &cfg)
	if err == nil {
		err = f.load(ctx, &cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("lookup: %w", err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	f.running.Go(func() { f.refresher.Run(running) })
	return f, nil
}

// The function "open" returns a Follower that has not loaded a generation yet.
func open(ctx context.Context, cfg *Config) (*Follower, error) {
	named, err := audience.NewNamed(cfg.Expressions)
	if err != nil {
		return nil, fmt.Errorf("expressions: %w", err)
	}
	if cfg.Interval < 0 || cfg.Timeout < 0 {
		return nil, errors.New("Config.Interval and Config.Timeout must not be negative")
	}
	source, err := objects.Open(ctx, cfg.Source, objects.S3Config{Endpoint: cfg.S3.Endpoint, Region: cfg.S3.Region,
		PathStyle: cfg.S3.PathStyle})
	if err != nil {
		return nil, fmt.Errorf("Config.Source: %w", err)
	}
	guarded, err := guardedBy(cfg)
	if err != nil {
		return nil, err
	}
	f := &Follower{engine: audience.NewEngine(0), named: named}
	required := slices.Clone(cfg.Require)
	f.refresher = segments.NewRefresher(segments.RefresherConfig{
		Source: source, CacheDir: cfg.CacheDir, Interval: cfg.Interval, Timeout: cfg.Timeout, Logger: cfg.Logger,
		Keep:    -1, // a caller keeps a replaced generation as a *Generation
		Require: func(m *segments.Manifest) error { return lacks(required, m) },
		Guarded: func() segments.Guarded { return guarded },
		OnSwap:  func(s *segments.Snapshot) { f.current.Store(newGeneration(s, f.engine, f.named)) },
	})
	return f, nil
}

// guardedBy returns, for each required set, the percentage of users who may leave the set from one generation to the
// next. The Follower rejects a new generation in which a required set has lost more than its percentage of users.
func guardedBy(cfg *Config) (segments.Guarded, error) {
	g := segments.Guarded{MayLose: map[string]float64{}}
	for _, name := range cfg.Require {
		g.MayLose[name] = segments.DefaultMayLose
	}
	for name, percent := range cfg.MayLose {
		if _, required := g.MayLose[name]; !required {
			return g, fmt.Errorf("Config.MayLose: %q must also be listed in Config.Require", name)
		}
		if !(percent >= 0 && percent <= 100) {
			return g, fmt.Errorf("Config.MayLose: %q: the percentage must be from 0 to 100, got %v", name, percent)
		}
		g.MayLose[name] = percent
	}
	return g, nil
}

// The method "load" loads a generation (published version), and returns an error if the generation lacks a name in
// Config.Require.
func (f *Follower) load(ctx context.Context, cfg *Config) error {
	err := f.refresher.Load(ctx)
	if errors.Is(err, objects.ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrNothingPublished, err)
	}
	if err != nil {
		return err
	}
	for _, name := range cfg.Require { // without another generation, the Refresher accepts an incomplete one
		if g := f.Current(); g.byName[name] == nil {
			return fmt.Errorf("generation %s: %w", g.Name(), lacksError(name))
		}
	}
	return nil
}

// The function "lacks" returns an error if a generation lacks a required segment or set. The error names the missing
// segment or set.
func lacks(required []string, m *segments.Manifest) error {
	has := map[string]bool{}
	for i := range m.Segments {
		has[m.Segments[i].Name] = true
	}
	for i := range m.Sets {
		has[m.Sets[i].Name] = true
	}
	for _, name := range required {
		if !has[name] {
			return lacksError(name)
		}
	}
	return nil
}

func lacksError(name string) error {
	return fmt.Errorf("required segment or set %q does not exist", name)
}

// The method Current returns the generation in use. For look-ups that belong together, a caller should use one
// Generation, because the next call of Current may return a newer Generation.
func (f *Follower) Current() *Generation { return f.current.Load() }

// The method Close stops the background checks and waits for a running check to end. Existing Generations remain
// usable. A second call of Close has no effect.
func (f *Follower) Close() {
	f.stop()
	f.running.Wait()
}

// Status is the result of the last check of the source, and the state of the generation in use.
type Status struct {
	Generation string
	CreatedAt  time.Time // creation time of the generation, by its publisher's clock
	LoadedAt   time.Time
	FromCache  bool      // true until the source confirms the cached generation
	CheckedAt  time.Time // time of the last check, successful or not
	BuiltAt    time.Time // time of the last complete build, with or without changes; zero: unknown
	// Error is the reason for which the last check failed. If the last check succeeded, Error is empty. ErrorAt is the
	// time of the first failed check in a row.
	Error   string
	ErrorAt time.Time
}

// The method Status returns the state of the generation in use and of the last check of the source.
func (f *Follower) Status() Status {
	s := f.refresher.Status()
	return Status{
		Generation: s.Generation, CreatedAt: s.CreatedAt, LoadedAt: s.LoadedAt,
		FromCache: s.Origin == segments.OriginCache,
		CheckedAt: s.CheckedAt, BuiltAt: s.BuiltAt, Error: s.Error, ErrorAt: s.ErrorAt,
	}
}
