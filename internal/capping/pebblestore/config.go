package pebblestore

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping/pebblestore/database"
)

// Config is how a store is opened. Only Path is required.
type Config struct {
	Path   string           // path: directory, one process at a time; beside it is a file PATH.id
	Clock  func() time.Time // stamps sends; nil: time.Now
	Logger *slog.Logger     // nil: none
	// ClockBound is how far the clock may be ahead of the file system's at the
	// start, and of what has passed since; 0: 24 hours.
	ClockBound time.Duration
	// MustExist (create: false): Open fails where no store is, instead of beginning an empty one.
	MustExist bool
	// Registerer gets the metrics that only this store has; nil: none.
	Registerer prometheus.Registerer
	// CacheBytes (cache_size) bounds what is kept in memory of logs, three quarters of it, and
	// of the database's blocks; 0: DefaultCacheBytes. It is taken as it is needed. Buffers
	// of writes that are on their way into files come to it, 192 MiB at most.
	CacheBytes int64
	// SweepInterval is how often the background sweep does one small step of
	// removing dead logs, and of an upgrade; 0: one second.
	SweepInterval time.Duration

	fs          vfs.FS // of tests; nil: the disk
	upgradeKeys int    // of tests: how many keys a step of an upgrade looks at; 0: as many as one of the sweep
}

// DefaultCacheBytes is Config.CacheBytes where nothing is said.
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

// database is how the store's database is opened.
func (c Config) database(m *metrics) database.Config {
	return database.Config{
		Path: c.Path, Clock: c.Clock, ClockBound: c.ClockBound, Logger: c.Logger, MustExist: c.MustExist,
		CacheBytes: c.CacheBytes / 4, CountError: func(kind string) { m.errors.WithLabelValues(kind).Inc() }, FS: c.fs,
	}
}
