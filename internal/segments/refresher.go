package segments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/bitmap"
	"capper/internal/objects"
)

// Where the generation in use came from.
const (
	OriginSource = "source"
	OriginCache  = "cache"
)

// Defaults of RefresherConfig.
const (
	DefaultInterval = 30 * time.Second
	DefaultTimeout  = 2 * time.Minute
)

// lookTimeout bounds the reading of current.json and of a manifest, two small
// objects: a source that hangs must not hold up a start from the cache.
const lookTimeout = 10 * time.Second

// RefresherConfig configures a Refresher. Only Source is required.
type RefresherConfig struct {
	Source objects.Source
	// CacheDir keeps a verified copy of the last good generation, so that Load
	// works while the source is down. Empty: no cache.
	CacheDir string
	// Interval between two looks at the source. 0: DefaultInterval.
	Interval time.Duration
	// Timeout of one attempt, reading included. 0: DefaultTimeout.
	Timeout time.Duration
	// Logger: nil logs nowhere.
	Logger *slog.Logger
	// Clock: nil is time.Now.
	Clock func() time.Time
	// Require says why a generation must not be used, nil when it may: it is asked before
	// bitmaps are read, and what it refuses is not swapped in, see Load. It is called by the
	// goroutine of Load or Run. Nil: every generation may be used.
	Require func(*Manifest) error
	// Guarded says which losses of users keep a generation out of use: each generation is
	// compared with the one in use, at a start with the cached one, and where there is none
	// with the newest earlier one of the source. It is called by the
	// goroutine of Load or Run, and by Status. Nil: nothing is compared.
	Guarded func() Guarded
	// Keep is how long an earlier generation is kept after it was last pinned. 0: DefaultKeep.
	// One that nobody pinned is kept for a grace of twice Interval after the swap, a minute at
	// least and Keep at most, as other instances may still give out its name. Negative: none is kept.
	Keep time.Duration
	// OnSwap is called with each generation before Current returns it, by the
	// goroutine of Load or Run. Nil: nothing.
	OnSwap func(*Snapshot)
	// Registerer receives the metrics. Nil: none.
	Registerer prometheus.Registerer
}

// Refresher keeps the live generation in memory: Load once, then Run. Current
// and Status are safe at any time from any goroutine.
type Refresher struct {
	cfg     RefresherConfig
	cache   *cache
	metrics *metrics
	current atomic.Pointer[Snapshot]
	pins    *pins
	wake    chan struct{} // has Run look at the source before the interval is over
	tag     string        // of the current.json whose generation is in use; only Load and Run touch it
	spoiled spoiled
	checked string    // tag of checked.json
	logged  time.Time // when a fault was logged last; only Load and Run touch it
	held    holding   // only Load and Run touch it
	asOf    atomic.Pointer[confirmed]

	mu     sync.Mutex
	status Status
	left   map[string]Left // by set, see Guards
	newest string          // the latest generation that was ever in use here
	lost   []string        // see LostZones
}

// NewRefresher returns a refresher that has not loaded anything yet.
func NewRefresher(cfg RefresherConfig) *Refresher {
	if cfg.Interval <= 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.Keep == 0 {
		cfg.Keep = DefaultKeep
	}
	if cfg.Guarded == nil {
		cfg.Guarded = func() Guarded { return Guarded{} }
	}
	r := &Refresher{cfg: cfg, pins: newPins(&cfg), wake: make(chan struct{}, 1), cache: newCache(cfg.CacheDir,
		cfg.Source.Name()),
		left: map[string]Left{}}
	r.metrics = newMetrics(cfg.Registerer, r, cfg.Clock)
	return r
}

// Current is the generation in use; nil before Load has succeeded.
func (r *Refresher) Current() *Snapshot { return r.current.Load() }

// Load brings the live generation into memory: from the source, or when that
// fails from the cache, which Status and the log then say. What Require refuses is
// taken only when neither has another one; Status then says why it was refused, and
// Run goes on looking. Where users left guarded sets, the generation stays in use, or comes
// into use, with which that was found: the cached one, else an earlier one of the source. It fails when neither has
// one; the error is objects.ErrNotFound exactly when nothing has ever been published there and nothing is cached.
func (r *Refresher) Load(ctx context.Context) error {
	sourceErr := r.refresh(ctx, r.cfg.Require)
	if sourceErr == nil || r.stay(ctx, r.cfg.Require) {
		return nil
	}
	cacheErr := r.loadCached(ctx, r.cfg.Require)
	if isRefused(sourceErr) && cacheErr != nil && r.refresh(ctx, nil) == nil || r.stay(ctx, nil) {
		return nil
	}
	if isRefused(cacheErr) {
		cacheErr = r.loadCached(ctx, nil)
	}
	if cacheErr == nil {
		return nil
	}
	return &loadError{
		error: fmt.Errorf("%w; load from the cache: %w", sourceErr, cacheErr),
		never: errors.Is(sourceErr, ErrNothingLive) && neverPublished(ctx, r.cfg.Source) && !r.cache.exists(ctx),
	}
}

// loadCached takes the cached generation into use, unless it is refused.
func (r *Refresher) loadCached(ctx context.Context, require func(*Manifest) error) error {
	g, err := r.cache.load(ctx, require)
	if err != nil {
		return err
	}
	r.readCachedChecked(ctx)
	r.swap(g.Snapshot(), OriginCache, &comparison{})
	r.cfg.Logger.Warn("segments: the published generation cannot be used, the cached one is in use",
		"source", r.cfg.Source.Name(), "generation", g.Manifest.Generation, "created_at", g.Manifest.CreatedAt)
	return nil
}

// loadError is why nothing could be loaded. It answers for objects.ErrNotFound itself:
// an object that is missing from a damaged generation is something else.
type loadError struct {
	error
	never bool
}

func (e *loadError) Is(target error) bool {
	if target == objects.ErrNotFound || target == ErrNothingLive {
		return e.never
	}
	return errors.Is(e.error, target)
}

func (e *loadError) As(target any) bool { return errors.As(e.error, target) }

// neverPublished reports whether a source without current.json has no manifest
// either, as far as it can be listed.
func neverPublished(ctx context.Context, src objects.Source) bool {
	list, err := src.List(ctx, GenerationsPrefix)
	return err != nil || len(list) == 0
}

// Run looks at the source once per interval until ctx is done, and when Pin was asked for
// a generation that is not here yet. A failure keeps
// the generation in use, shows in Status, metrics and the log, and is tried
// again with the next interval, or later: see spoiled.
func (r *Refresher) Run(ctx context.Context) {
	tick := time.NewTicker(r.cfg.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.wake:
		}
		_ = r.refresh(ctx, r.cfg.Require) // recorded in the status, the metrics and the log
	}
}

// refresh looks at the source once, and records what came of it.
func (r *Refresher) refresh(ctx context.Context, require func(*Manifest) error) error {
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	known := newMemory(r.inMemory())
	g, tag, err := r.fetch(limited, known, require)
	if ctx.Err() != nil {
		return ctx.Err() // stopping; nothing was learned about the source
	}
	r.spoiled.note(tag, err, r.cfg.Clock(), r.cfg.Interval)
	if err == nil || errors.Is(err, objects.ErrNotModified) || isRefused(err) {
		r.readChecked(limited)
	}
	r.confirm()
	r.pins.expire(r.Current())
	switch {
	case errors.Is(err, objects.ErrNotModified):
		r.record(resultUnchanged, nil)
		return nil
	case err != nil:
		r.record(resultFailed, err)
		return err
	case g == nil: // a new current.json that names the generation in use
		r.tag = tag
		r.markOrigin()
		r.record(resultUnchanged, nil)
		return nil
	}
	compared, err := r.compare(limited, known, g)
	if err != nil {
		r.record(resultFailed, err)
		return err
	}
	r.keepCopy(limited, g)
	next := known.snapshot(g)
	if err := g.Manifest.fulfils(require); err != nil { // what is required has changed while it was read
		r.record(resultFailed, err)
		return err
	}
	r.tag = tag
	r.swap(next, OriginSource, compared)
	r.record(resultSwapped, nil)
	return nil
}

// inMemory are the generations in memory.
func (r *Refresher) inMemory() []*Snapshot {
	list := r.pins.snapshots()
	if now := r.Current(); now != nil {
		list = append(list, now)
	}
	return list
}

// keepCopy caches a generation. One that is taken for want of a better does not take the
// place of the last good copy.
func (r *Refresher) keepCopy(ctx context.Context, g *Generation) {
	if g.Manifest.fulfils(r.cfg.Require) != nil {
		return
	}
	if err := r.cache.save(ctx, g); err != nil {
		r.cfg.Logger.Warn("segments: the generation could not be written to the cache",
			"generation", g.Manifest.Generation, "error",
			err)
	}
}

// fetch reads the live generation if it is not the one in use and not refused: what is
// not in memory. It reads bitmaps from the cache where that has them, for a quarter of
// the time at most: a cache that hangs must not keep it from the source.
func (r *Refresher) fetch(ctx context.Context, known *memory, require func(*Manifest) error) (*Generation, string,
	error) {
	m, tag, err := r.look(ctx)
	if err == nil && m != nil {
		r.held.sees(m)
		if err = m.fulfils(require); err == nil {
			err = r.held.again(m, r.inUse(), r.cfg.Guarded())
		}
	}
	if err != nil || m == nil {
		return nil, tag, err
	}
	near, cancel := context.WithTimeout(ctx, r.cfg.Timeout/4)
	defer cancel()
	mapped := known.codes(m) != nil && r.cache.holds(near, m.Segments)
	atOnce := parallelReads
	if r.Current() != nil {
		atOnce = known.cores
	}
	g, err := readBitmaps(ctx, m, atOnce, func(ctx context.Context, entry int, s *Segment) (*bitmap.Bitmap, error) {
		if b := known.sets[s.SHA256]; b != nil {
			return b, nil
		}
		if mapped && entry < len(m.Segments) {
			return nil, nil // its CodeMap is in memory
		}
		if b, ok := r.cache.open(near, s); ok {
			return b, nil
		}
		return readBitmap(ctx, r.cfg.Source, s)
	})
	return g, tag, err
}

// look reads the manifest of the live generation, nil if it is the one in use.
// The tag is that of the current.json which it has read, also with an error.
func (r *Refresher) look(ctx context.Context) (*Manifest, string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("source did not respond within %s",
		lookTimeout))
	defer cancel()
	live, tag, err := ReadPointer(ctx, r.cfg.Source, r.tag)
	if err == nil {
		err = r.spoiled.wait(tag, r.cfg.Clock())
	}
	if err == nil {
		var m *Manifest
		if now := r.Current(); now != nil && now.Generation() == live.Generation {
			err = live.check(&now.manifest)
		} else {
			m, err = live.ReadManifest(ctx, r.cfg.Source)
		}
		if err == nil {
			return m, tag, nil
		}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	return nil, tag, err
}

// readChecked reads when a build last came to its end. That it cannot be read is
// no fault of the segments: then what is known stays, and gets old.
func (r *Refresher) readChecked(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	c, tag, err := readChecked(ctx, r.cfg.Source, r.checked)
	if err != nil {
		return
	}
	r.checked = tag
	r.noteChecked(ctx, c)
}

// noteChecked takes down when a build last came to its end, and caches that.
func (r *Refresher) noteChecked(ctx context.Context, c Checked) {
	r.held.checked = c
	r.cache.saveChecked(ctx, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.BuiltAt = c.CheckedAt
}

// swap puts a generation into use, with what its comparison with the one before found.
func (r *Refresher) swap(s *Snapshot, origin string, compared *comparison) {
	if r.cfg.OnSwap != nil {
		r.cfg.OnSwap(s)
	}
	if before := r.Current(); before != nil {
		r.pins.supersede(before)
		r.noteZones(&before.manifest, &s.manifest)
	}
	r.current.Store(s)
	r.held.former = nil
	r.held.sees(&s.manifest)
	r.confirm()
	r.countLosses(compared)
	r.mu.Lock()
	r.status.Unjudged, r.status.ComparedWith = compared.unjudged, compared.against()
	r.newest = max(r.newest, s.Generation())
	r.status.Generation, r.status.CreatedAt = s.Generation(), s.CreatedAt()
	r.status.LoadedAt, r.status.Origin = r.cfg.Clock(), origin
	r.mu.Unlock()
	r.cfg.Logger.Info("segments: generation in use", "generation", s.Generation(), "origin", origin,
		"segments", len(s.manifest.Segments), "sets", len(s.manifest.Sets), "size_bytes", s.SizeBytes())
}
