package pebblestore

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// Store is an embedded durable store. It is safe for concurrent use.
type Store struct {
	db      *pebble.DB
	disk    *disk     // what the database writes to
	lock    io.Closer // of the directory
	clock   func() time.Time
	logger  *slog.Logger
	metrics *metrics
	memory  *capping.MessageMemory

	stripes [stripeCount]stripe
	writes  chan struct{} // one for each call under way that writes
	reads   chan struct{} // one for each that does not
	calls   sync.Pool     // of *call
	workers sync.Pool     // of *worker
	written atomic.Int64  // commits so far
	synced  atomic.Int64  // commits that are known to be durable
	damaged damage
	outage

	config   Config
	created  bool // empty, by this Open
	guard    clockGuard
	kept     keeping
	marking  sync.Mutex // over identity
	identity identity
	marked   atomic.Int64           // written, at the last mark
	markedAt time.Time              // of the sweep's goroutine
	unmarked atomic.Pointer[string] // why the file beside the directory could not be written
	memo     sync.Mutex             // over the writing of message ids
	stop     context.CancelFunc
	running  sync.WaitGroup // calls, also those that nobody waits for any more, and the sweep
}

var _ capping.Store = (*Store)(nil)

// maxCalls is how many calls that write may be under way, and as many that
// read. More wait for their turn: a stalled disk must not gather calls without
// end.
const maxCalls = 256

// load checks the format and reads what is remembered across restarts.
func (s *Store) load(config Config) error {
	if err := checkFormat(s.db); err != nil {
		return err
	}
	if err := errors.Join(s.loadRetentions(), s.loadMended()); err != nil {
		return err
	}
	return s.identify(config)
}

const createdWarning = "the store was created empty at this start: sends before it are not known"

// Health is "down" when the disk has refused a write or the clock cannot be
// right, "degraded" while no
// files can be made of what is in the write buffers or damaged logs are known
// of, else "ok". It asks only what is in memory.
func (s *Store) Health(context.Context) capping.Health {
	health := capping.Health{Kind: "embedded", State: "ok", Path: s.config.Path}
	if s.created {
		health.Warnings = append(health.Warnings, createdWarning)
	}
	if warning := s.unmarked.Load(); warning != nil {
		health.Warnings = append(health.Warnings, *warning)
	}
	if warning := s.kept.now().warning(capping.InstantOf(s.clock())); warning != "" {
		health.Warnings = append(health.Warnings, warning)
	}
	if err := s.damaged.err(); err != nil {
		health.State, health.Error = "degraded", err.Error()
	}
	if flush := s.flush.Load(); flush != nil {
		health.State, health.Error = "degraded", *flush
	}
	if _, err := s.now(); err != nil {
		health.State, health.Error = "down", err.Error()
	}
	if err := s.broken(); err != nil {
		health.State, health.Error = "down", err.Error()
	}
	return health
}
