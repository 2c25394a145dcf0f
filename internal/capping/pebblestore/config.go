package pebblestore

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping/pebblestore/database"
)

// Config holds the settings of an embedded store. Only the field Path is required.
type Config struct {
	Path   string           // path: the directory, for one process at a time; the file PATH.id lies beside it
	Clock  func() time.Time // the clock that stamps sends; nil: time.Now
	Logger *slog.Logger     // nil: no log
	// ClockBound is the largest accepted lead of the process's clock over a comparison time. The comparison time is the
	// file system's time at the start, plus the time that has passed since then. A zero ClockBound means 24 hours.
	ClockBound time.Duration
	// MustExist (create: false) makes Open return an error if the store does not exist. If MustExist is false, Open
	// creates a missing store without records.
	MustExist bool
	// Registerer registers the metrics that only the embedded store has. If Registerer is nil, the store has no
	// metrics.
	Registerer prometheus.Registerer
	// CacheBytes (cache_size) limits the memory for caches: three quarters are for users' logs, the rest for database
	// blocks. Zero means DefaultCacheBytes. The store allocates the memory of the caches on demand. Write buffers of
	// the database take at most 192 MiB more.
	CacheBytes int64
	// SweepInterval is the time between two small steps of the background work that removes expired logs and upgrades
	// the format. A zero SweepInterval means one second.
	SweepInterval time.Duration
	// IDs is the kind of the user ids. The kind of ids never changes in a store: for another kind, Open returns an
	// error. The zero IDs means dense ids, which are below 1<<32. For any other kind of ids, the store identifies users
	// by id images (64-bit numbers that stand for ids).
	IDs IDs

	fs          vfs.FS // for tests; nil: the disk
	upgradeKeys int    // for tests: number of keys in a step of an upgrade; 0: as in a step of the sweep
}

// IDs holds the kind of the users' ids, and a check word of the key that makes id images (64-bit numbers that stand for
// ids); see database.IDs.
type IDs = database.IDs

// DefaultCacheBytes is the size in bytes of the cache if Config.CacheBytes is 0.
const DefaultCacheBytes = 512 << 20

// InMemory returns the configuration of a store whose files are in memory, for tests of other packages. The files last
// as long as the returned configuration.
func (c Config) InMemory() Config {
	c.fs = vfs.NewMem()
	return c
}

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

// The method "database" returns the part of the configuration that package database needs.
func (c Config) database(m *metrics) database.Config {
	return database.Config{
		Path: c.Path, Clock: c.Clock, ClockBound: c.ClockBound, Logger: c.Logger, MustExist: c.MustExist,
		CacheBytes: c.CacheBytes / 4, CountError: func(kind string) { m.errors.WithLabelValues(kind).Inc() }, FS: c.fs,
		IDs: c.IDs,
	}
}
