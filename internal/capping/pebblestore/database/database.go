package database

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"capper/internal/capping"
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

// DB is an open database. It is safe for concurrent use.
type DB struct {
	*pebble.DB // for batches and iterators; what is written is committed with Commit and Sync

	config  Config
	disk    *disk         // what the database writes to
	lock    io.Closer     // of the directory
	created bool          // empty, by this Open
	writes  chan struct{} // one for each call under way that writes
	reads   chan struct{} // one for each that does not
	written atomic.Int64  // commits so far
	synced  atomic.Int64  // commits that are known to be durable
	damaged damage
	upgrade atomic.Pointer[upgrade] // nil: none is under way
	outage

	guard       clockGuard
	marking     sync.Mutex // over identity
	identity    identity
	marked      atomic.Int64           // written, at the last mark
	markTrouble atomic.Pointer[string] // why the file beside the directory could not be written
	watch       watch
	copying     atomic.Bool    // for a backup
	copied      atomic.Bool    // and no mark was set since
	restored    *restored      // from a backup; nil: never
	running     sync.WaitGroup // calls, also those that nobody waits for any more
}

// maxCalls is how many calls that write may be under way, and as many that
// read. More wait for their turn: a stalled disk must not gather calls without
// end.
const maxCalls = 256

// load checks the format and reads what is remembered across restarts.
func (d *DB) load(config Config) error {
	d.loadRestored()
	version, err := d.checkFormat()
	if err != nil {
		return err
	}
	if err := d.loadMended(); err != nil {
		return err
	}
	if err := d.identify(config); err != nil {
		return err
	}
	return d.beginUpgrade(version)
}

// Created reports whether there was no store before this Open.
func (d *DB) Created() bool { return d.created }

const createdWarning = "the store was created empty at this start: earlier sends are unknown"

// Health is "down" when the disk has refused a write or the clock cannot be
// right, "degraded" while no files can be made of what is in the write buffers
// or damaged logs are known of, else "ok". It asks only what is in memory. Only a
// store that is out of service needs a restart: a clock can be put right.
func (d *DB) Health(context.Context) capping.Health {
	health := capping.Health{Kind: "embedded", State: "ok", Path: d.config.Path}
	if d.created {
		health.Warnings = append(health.Warnings, createdWarning)
	}
	if warning := d.markTrouble.Load(); warning != nil {
		health.Warnings = append(health.Warnings, *warning)
	}
	if upgrade := d.Upgrade(); upgrade != nil {
		health.Warnings = append(health.Warnings, upgrade.warning())
	}
	if err := d.damaged.err(); err != nil {
		health.State, health.Error = "degraded", err.Error()
	}
	if flush := d.flush.Load(); flush != nil {
		health.State, health.Error = "degraded", *flush
	}
	if _, err := d.Now(); err != nil {
		health.State, health.Error = "down", err.Error()
	}
	if err := d.Broken(); err != nil {
		health.State, health.Error, health.NeedsRestart = "down", err.Error(), true
	}
	return health
}
