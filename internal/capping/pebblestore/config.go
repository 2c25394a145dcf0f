package pebblestore

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping/pebblestore/database"
)

// Config holds the settings of a store. Only Path is required.
type Config struct {
	Path   string           // path: the directory, for one process at a time; the file PATH.id lies beside it
	Clock  func() time.Time // the clock that stamps sends; nil: time.Now
	Logger *slog.Logger     // nil: no log
	// ClockBound is how far the clock may be ahead of the file system's time at the start plus the time since
	// then. Zero means 24 hours.
	ClockBound time.Duration
	// MustExist (create: false) makes Open return an error when there is no store, instead of creating an empty one.
	MustExist bool
	// Registerer registers the metrics that only this store has; nil: none.
	Registerer prometheus.Registerer
	// CacheBytes (cache_size) bounds the memory for logs (three quarters) and for database blocks. Zero means
	// DefaultCacheBytes. Memory is allocated when it is needed. Write buffers need at most 192 MiB more.
	CacheBytes int64
	// SweepInterval is the time between two small steps of the background sweep, which removes dead logs, and of
	// an upgrade. Zero means one second.
	SweepInterval time.Duration
	// IDs says which ids the users have. A store keeps the ids of its creation, and Open rejects others. The zero value
	// means dense ids, which are below 1<<32. Users of all other kinds are 64-bit images.
	IDs IDs

	fs          vfs.FS // for tests; nil: the disk
	upgradeKeys int    // for tests: the number of keys in a step of an upgrade; 0: as many as in a step of the sweep
}

// IDs names the kind of the users' ids and a check of the key that makes images; see database.IDs.
type IDs = database.IDs

// DefaultCacheBytes is the default of Config.CacheBytes.
const DefaultCacheBytes = 512 << 20

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.CacheBytes <= 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.SweepInterval <= 0 {
		c.SweepInterval = time.Second
	}
	if c.upgradeKeys <= 0 {
		c.upgradeKeys = sweepKeys
	}
	return c
}

// database returns the settings of the store's database.
func (c Config) database(m *metrics) database.Config {
	return database.Config{
		Path: c.Path, Clock: c.Clock, ClockBound: c.ClockBound, Logger: c.Logger, MustExist: c.MustExist,
		CacheBytes: c.CacheBytes / 4, CountError: func(kind string) { m.errors.WithLabelValues(kind).Inc() }, FS: c.fs,
		IDs: c.IDs,
	}
}
