package segments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/objects"
)

// OriginSource and OriginCache name the origin of the generation (published version) in use: the source or the local
// cache.
const (
	OriginSource = "source"
	OriginCache  = "cache"
)

// DefaultInterval and DefaultTimeout are the defaults of the fields Interval and Timeout of RefresherConfig.
const (
	DefaultInterval = 30 * time.Second
	DefaultTimeout  = 2 * time.Minute
)

// lookTimeout is the maximum time in which a Refresher reads current.json and a manifest. Even if the source hangs, a
// service therefore starts from the cache without a long delay.
const lookTimeout = 10 * time.Second

// RefresherConfig configures a Refresher. Only the field Source of a RefresherConfig is required.
type RefresherConfig struct {
	Source objects.Source
	// CacheDir is a directory for a checked copy of the last good generation. With this copy, Load succeeds while the
	// source is down. If CacheDir is empty, the Refresher has no cache.
	CacheDir string
	// Interval is the time between two checks of the source. 0 means DefaultInterval.
	Interval time.Duration
	// Timeout is the maximum time of one check, including the download. 0 means DefaultTimeout.
	Timeout time.Duration
	// Logger receives the log. If Logger is nil, there is no log.
	Logger *slog.Logger
	// Clock returns the time. If Clock is nil, the Refresher uses time.Now.
	Clock func() time.Time
	// Require returns an error if the service must not use a generation. Load and Run call Require before they read
	// bitmaps, and do not use a rejected generation; the comment of Load describes the exception. A nil Require accepts
	// every generation.
	Require func(*Manifest) error
	// Guarded returns the limits on lost users of the guarded sets. The Refresher compares each new generation with the
	// generation in use. When the service starts, the Refresher compares the live generation with the cached
	// generation. Without a cache, the Refresher compares with the newest earlier generation of the source. Load, Run
	// and Status call Guarded. A nil Guarded disables the comparison.
	Guarded func() Guarded
	// Overruled returns the users whom API calls added to a set after the time "before" and until the time "next". The
	// arguments "before" and "next" are the as_of (time up to which a set reflects all changes) of an earlier and of a
	// later build. If the function is nil, no API calls change sets.
	Overruled func(set string, before, next time.Time) []capping.UserID
	// Changes returns a number that grows with each change of a set by API calls. If the function is nil, no API calls
	// change sets.
	Changes func() uint64
	// Keep is the time for which a replaced generation stays in memory after its last pin (use by a call that names the
	// generation). 0 means DefaultKeep. A replaced generation without a pin stays in memory for twice the Interval, but
	// at least a minute and at most Keep. During this time, other instances may still return the name of the replaced
	// generation. If Keep is negative, the Refresher keeps no replaced generation.
	Keep time.Duration
	// Load and Run call OnSwap with each new generation, before Current returns this generation. A nil OnSwap disables
	// the call.
	OnSwap func(*Snapshot)
	// Registerer receives the metrics. If Registerer is nil, there are no metrics.
	Registerer prometheus.Registerer
}

// A Refresher keeps the live generation (published version that current.json names) of the segments in memory, and
// replaces it when a new generation is published. The caller of a Refresher calls Load once, and then Run. The methods
// Current and Status are safe for concurrent use.
type Refresher struct {
	cfg     RefresherConfig
	cache   *cache
	metrics *metrics
	current atomic.Pointer[Snapshot]
	pins    *pins
	wake    chan struct{} // makes Run check the source before the interval ends
	tag     string        // tag of the current.json that names the generation in use; used only by Load and Run
	spoiled spoiled
	checked string    // tag of checked.json
	logged  time.Time // time at which a fault was last logged; used only by Load and Run
	held    holding   // used only by Load and Run
	late    lateCalls // used only by Load and Run
	asOf    atomic.Pointer[confirmed]

	mu     sync.Mutex
	status Status
	left   map[string]Left // by set, see Guards
	newest string          // the newest generation that this instance has ever used
	lost   []string        // see LostZones
}

// NewRefresher returns a Refresher that has not loaded a generation (published version) of segments yet.
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
	cfg.Keep = cmp.Or(cfg.Keep, DefaultKeep)
	if cfg.Guarded == nil {
		cfg.Guarded = func() Guarded { return Guarded{} }
	}
	r := &Refresher{cfg: cfg, pins: newPins(&cfg), wake: make(chan struct{}, 1), cache: newCache(cfg.CacheDir,
		cfg.Source.Name()),
		left: map[string]Left{}}
	r.metrics = newMetrics(cfg.Registerer, r, cfg.Clock)
	return r
}

// Current returns the generation (published version) in use, or nil before Load has succeeded.
func (r *Refresher) Current() *Snapshot { return r.current.Load() }

// Load loads the live generation (published version that current.json names) from the source. If the source fails, Load
// loads the cached generation, and Status and the log report the failure. Load uses a generation that Require rejects
// only if the source and the cache have no other generation. If Load uses a rejected generation, Status reports the
// reason of the rejection, and Run keeps checking the source. If guarded sets (sets with a limit on lost users) lost
// too many users in the live generation, Load uses the earlier generation of the comparison. The earlier generation
// comes from the cache, or from the source. Load returns an error if neither the source nor the cache has a usable
// generation. The error of Load is objects.ErrNotFound only if nothing has ever been published and the cache is empty.
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

// loadCached makes the cached generation (published version) the generation in use, or returns an error if the function
// "require" rejects this generation.
func (r *Refresher) loadCached(ctx context.Context, require func(*Manifest) error) error {
	g, err := r.cache.load(ctx, require)
	if err != nil {
		return err
	}
	r.readCachedChecked(ctx)
	r.swap(g.Snapshot(), OriginCache, &comparison{})
	r.cfg.Logger.Warn("segments: the published generation cannot be used, the cached one is in use",
		"source", r.cfg.Source.Name(), "generation", g.Manifest.Generation, "created_at", g.Manifest.CreatedAt)
	release(g.Manifest)
	return nil
}

// loadError contains the reasons for which the Refresher could load no generation (published version). loadError has
// its own method Is, because objects.ErrNotFound must mean that nothing was published. If only an object of a damaged
// generation is missing, errors.Is must not find objects.ErrNotFound.
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

// neverPublished reports whether the source has no manifest. If a listing of the source's objects fails, neverPublished
// also returns true.
func neverPublished(ctx context.Context, src objects.Source) bool {
	list, err := src.List(ctx, GenerationsPrefix)
	return err != nil || len(list) == 0
}

// Run checks the source for a new generation (published version) once per interval until ctx ends. Run also checks the
// source when a caller calls Pin with a newer generation. After a failure, Run keeps the generation in use, and Status,
// metrics and the log report the failure. Run retries at a later interval; the type "spoiled" describes the delay.
func (r *Refresher) Run(ctx context.Context) {
	tick, calls := time.NewTicker(r.cfg.Interval), time.NewTicker(lateInterval)
	defer tick.Stop()
	defer calls.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-calls.C:
			r.watchCalls(ctx)
			continue
		case <-tick.C:
		case <-r.wake:
		}
		_ = r.refresh(ctx, r.cfg.Require) // the status, the metrics and the log report the error
	}
}

// The method "refresh" checks once whether the source has a new generation (published version), and records the result.
func (r *Refresher) refresh(ctx context.Context, require func(*Manifest) error) error {
	limited, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	known := newMemory(r.inMemory())
	g, tag, err := r.fetch(limited, known, require)
	if ctx.Err() != nil {
		return ctx.Err() // the service is stopping; the check says nothing about the source
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
	if err := g.Manifest.fulfils(require); err != nil { // the requirement may have changed during the download
		r.record(resultFailed, err)
		return err
	}
	r.tag = tag
	r.swap(next, OriginSource, compared)
	r.record(resultSwapped, nil)
	release(g.Manifest)
	return nil
}

// releaseFrom is a size in bytes: for generations (published versions) of at least this size, the function "release"
// returns free memory to the operating system.
const releaseFrom = 64 << 20

// The function "release" returns free memory to the operating system after the load of a generation (published
// version). Without release, the Go runtime would keep the free memory until the service had used much more memory.
func release(m *Manifest) {
	var sizeBytes int64
	for _, e := range m.Entries() {
		sizeBytes += e.SizeBytes
	}
	for _, o := range m.Objects() {
		sizeBytes += o.SizeBytes
	}
	if sizeBytes >= releaseFrom {
		debug.FreeOSMemory()
	}
}

// inMemory returns all generations (published versions) in memory: the generation in use, and replaced generations that
// the Refresher keeps.
func (r *Refresher) inMemory() []*Snapshot {
	list := r.pins.snapshots()
	if now := r.Current(); now != nil {
		list = append(list, now)
	}
	return list
}

// keepCopy stores a generation (published version) in the local cache, unless Require rejects the generation. The local
// cache therefore keeps the last good generation.
func (r *Refresher) keepCopy(ctx context.Context, g *Generation) {
	if g.Manifest.fulfils(r.cfg.Require) != nil {
		return
	}
	if err := r.cache.save(ctx, g); err != nil {
		r.cfg.Logger.Warn("segments: the generation could not be written to the cache",
			"generation", g.Manifest.Generation, "error",
			err)
		return
	}
	if r.cache != nil && g.Dictionary != nil && !g.Dictionary.mapped {
		if d, err := r.cache.dictionary(ctx, g.Manifest); err == nil {
			g.Dictionary = d // the cached file is mapped instead of a copy on the heap
		}
	}
	if r.cache != nil && g.Back != nil && !g.Back.mapped {
		if b, err := r.cache.back(ctx, g.Manifest); err == nil {
			g.Back = b
		}
	}
}

// The method "fetch" reads the live generation (published version that current.json names), unless this generation is
// already in use or Require rejects it. The method "fetch" reads only bitmaps and files that are not in memory, from
// the local cache if possible. Because the cache may hang, reading from the cache may take at most a quarter of the
// time-out. If the cache hangs, enough time remains for reading from the source.
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
	scheme, err := r.readScheme(ctx, m)
	if err != nil {
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
	if err == nil && m.IDs != nil {
		g.Scheme = scheme
		err = g.readFiles(atOnce,
			func() (*Dictionary, error) { return r.readDictionary(ctx, near, known, m) },
			func() (*Back, error) { return r.readBack(ctx, near, known, m) })
	}
	return g, tag, err
}

// readScheme reads the object ids.json of the source. The error is a *RefusedError if the kind or key of ids in the
// manifest differs from ids.json, or from the generation (published version) in use.
func (r *Refresher) readScheme(ctx context.Context, m *Manifest) (*ids.Scheme, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	scheme, err := ReadScheme(ctx, r.cfg.Source, m)
	if now := r.Current(); err == nil && now != nil {
		err = m.agreesWithUse(now)
	}
	if wrong := (*IDsError)(nil); errors.As(err, &wrong) {
		return nil, &RefusedError{m.Generation, err}
	}
	return scheme, err
}

// readBack returns the BackFile (file with the user ids) to which the manifest refers: from memory, from the cache, or
// from the source. If the manifest names no BackFile, the result is nil.
func (r *Refresher) readBack(ctx, near context.Context, known *memory, m *Manifest) (*Back, error) {
	if m.back() == nil {
		return nil, nil
	}
	for _, s := range known.snapshots {
		if s.back != nil && s.back.sha256 == m.back().SHA256 {
			return s.back, nil
		}
	}
	if r.cache != nil {
		if b, err := r.cache.back(near, m); err == nil {
			return b, nil
		}
	}
	return m.ReadBack(ctx, r.cfg.Source)
}

// readDictionary gets the dictionary that the manifest names from memory, from the cache, or from the source.
func (r *Refresher) readDictionary(ctx, near context.Context, known *memory, m *Manifest) (*Dictionary, error) {
	for _, s := range known.snapshots {
		if s.manifest.SameNumbers(m) {
			return s.dictionary, nil
		}
	}
	if r.cache != nil {
		if d, err := r.cache.dictionary(near, m); err == nil {
			return d, nil
		}
	}
	return m.readDictionary(ctx, r.cfg.Source)
}

// The method "look" reads the manifest of the live generation (published version that current.json names), or returns
// nil if this generation is already in use. The method "look" also returns the object tag of the current.json that it
// read, even together with an error.
func (r *Refresher) look(ctx context.Context) (*Manifest, string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf(
		"the segments location did not respond within %s",
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

// readChecked reads the time of the last complete build from the source. If the read fails, readChecked keeps the known
// time and reports no error, because the segments themselves have no fault.
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

// noteChecked records the time of the last complete build, and stores this time in the local cache.
func (r *Refresher) noteChecked(ctx context.Context, c Checked) {
	r.held.checked = c
	r.cache.saveChecked(ctx, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.BuiltAt = c.CheckedAt
}

// The method "swap" makes the snapshot s the generation (published version) in use, and records the result of comparing
// it with the previous generation.
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
	r.countOverruled(s)
	r.mu.Lock()
	r.status.Unjudged, r.status.ComparedWith = compared.unjudged, compared.against()
	r.newest = max(r.newest, s.Generation())
	r.status.Generation, r.status.CreatedAt = s.Generation(), s.CreatedAt()
	r.status.LoadedAt, r.status.Origin = r.cfg.Clock(), origin
	r.mu.Unlock()
	r.cfg.Logger.Info("segments: generation in use", "generation", s.Generation(), "origin", origin,
		"segments", len(s.manifest.Segments), "sets", len(s.manifest.Sets), "size_bytes", s.SizeBytes())
}
