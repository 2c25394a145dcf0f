package database

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config is how a database is opened. Only Path is required.
type Config struct {
	Path   string           // directory, one process at a time; beside it is a file PATH.id
	Clock  func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: none
	// ClockBound is how far the clock may be ahead of the file system's at the
	// start, and of what has passed since; 0: 24 hours.
	ClockBound time.Duration
	// MustExist: Open fails where no store is, instead of beginning an empty one.
	MustExist bool
	// CountError is told the kind of each error; nil: nobody is.
	CountError func(kind string)
	// CacheBytes bounds what is kept in memory of the database's blocks. Buffers
	// of writes that are on their way into files come to it, 192 MiB at most.
	CacheBytes int64
	// FS is where the directory is; nil: the disk.
	FS vfs.FS
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.ClockBound <= 0 {
		c.ClockBound = defaultClockBound
	}
	if c.CountError == nil {
		c.CountError = func(string) {}
	}
	if c.FS == nil {
		c.FS = vfs.Default
	}
	return c
}
