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

// Config holds the settings of a database. Only the field Path is required.
type Config struct {
	Path   string           // the directory, for one process at a time; the file PATH.id lies beside it
	Clock  func() time.Time // nil: time.Now
	Logger *slog.Logger     // nil: no log
	// ClockBound is the largest accepted lead of the process's clock over a comparison time. The comparison time is the
	// file system's time at the start, plus the time that has passed since then. A zero ClockBound means 24 hours.
	ClockBound time.Duration
	// MustExist makes Open return an error if no store exists in the directory. If MustExist is false, Open creates a
	// missing store without records.
	MustExist bool
	// The database calls CountError with the kind of each error. If CountError is nil, errors are not counted.
	CountError func(kind string)
	// CacheBytes limits the memory for cached database blocks. Write buffers take at most 192 MiB more.
	CacheBytes int64
	// FS is the file system of the directory. If FS is nil, the disk is used.
	FS vfs.FS
	// IDs is the kind of the user ids. If the store has another kind of ids, Open returns an error.
	IDs IDs
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

// DB is an open database. A DB is safe for concurrent use.
type DB struct {
	*pebble.DB // for batches and iterators; writes use Commit and Sync

	config  Config
	disk    *disk         // the file system that Pebble uses
	lock    io.Closer     // the lock of the directory
	created bool          // this Open created the database
	writes  chan struct{} // one slot for each writing call in progress
	reads   chan struct{} // one slot for each reading call in progress
	written atomic.Int64  // number of commits
	synced  atomic.Int64  // number of commits that are surely durable
	damaged damage
	wide    bool                    // users are id images (64-bit numbers that stand for ids)
	upgrade atomic.Pointer[upgrade] // nil: no upgrade is in progress
	changes atomic.Bool             // the store has the format changesFormat, or users are images
	outage

	guard       clockGuard
	marking     sync.Mutex // protects identity
	identity    identity
	marked      atomic.Int64           // the value of written at the last identity mark
	markTrouble atomic.Pointer[string] // reason why the file PATH.id could not be written
	watch       watch
	copying     atomic.Bool    // a backup is in progress
	copied      atomic.Bool    // a backup was made since the last mark
	restored    *restored      // the last backup that was restored; nil: none
	running     sync.WaitGroup // calls in progress, including calls whose caller has stopped waiting
}

// maxCalls is the maximum number of concurrent calls that write, and also of concurrent calls that read. Further calls
// wait, so that the number of goroutines stays limited while the disk stalls.
const maxCalls = 256

// The method "load" checks the format of the database, and loads the identity and other data that stays in memory.
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

// The method Created reports whether this Open created the store.
func (d *DB) Created() bool { return d.created }

const createdWarning = "the store was created empty at this start: earlier sends are unknown"

// Health returns the state of the database from memory, without a read from the disk. If the disk has refused a write
// or the clock is wrong, the state is "down". The state is "degraded" if tables cannot be written or if damaged logs
// are known. Without one of these faults, the state is "ok". NeedsRestart is true only if the store is out of service.
// For a wrong clock, NeedsRestart is false, because an operator must correct the clock.
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
