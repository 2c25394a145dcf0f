package pebblestore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/prometheus/client_golang/prometheus"

	"capper/internal/capping"
)

// Store is an embedded durable store. It is safe for concurrent use.
type Store struct {
	db      *pebble.DB
	lock    *pebble.Lock
	clock   func() time.Time
	logger  *slog.Logger
	metrics *metrics
	memory  *capping.MessageMemory

	stripes [stripeCount]stripe
	slots   chan struct{} // one for each call under way
	calls   sync.Pool     // of *call
	workers sync.Pool     // of *worker
	written atomic.Int64  // commits so far
	synced  atomic.Int64  // commits that are known to be durable
	damaged damage
	fault   atomic.Pointer[error] // why nothing can be written any more

	retention atomic.Int64 // milliseconds, as last written; 0: not known yet
	memo      sync.Mutex   // over the writing of message ids
	stop      context.CancelFunc
	running   sync.WaitGroup // calls, also those that nobody waits for any more, and the sweep
}

var _ capping.Store = (*Store)(nil)

// maxCalls is how many calls may be under way. More wait for their turn: a
// stalled disk must not gather calls without end.
const maxCalls = 256

// Open opens the store in a directory, which is made when it is absent. It
// fails when another process has it open and when its format is unknown.
func Open(config Config) (*Store, error) {
	s, err := open(config.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("embedded store %q: %w", config.Path, err)
	}
	return s, nil
}

func open(config Config) (*Store, error) {
	s := &Store{
		clock: config.Clock, logger: config.Logger, memory: capping.NewMessageMemory(),
		metrics: newMetrics(), slots: make(chan struct{}, maxCalls),
	}
	s.calls.New = func() any { return new(call) }
	s.workers.New = func() any { return &worker{reader: reader{db: s.db}} }
	var err error
	if s.lock, err = lockDirectory(config); err != nil {
		return nil, err
	}
	if s.db, err = pebble.Open(config.Path, s.options(config)); err != nil {
		return nil, errors.Join(err, s.lock.Close())
	}
	if err := s.load(config.Registerer); err != nil {
		return nil, errors.Join(err, s.db.Close(), s.lock.Close())
	}
	segments := segmentsFor(config.CacheBytes / 4 * 3 / stripeCount)
	for i := range s.stripes {
		s.stripes[i].cache = newLogCache(segments)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.keepSweeping(ctx, config.SweepInterval) })
	return s, nil
}

// load checks the format, reads what is remembered across restarts, and then
// makes the metrics known.
func (s *Store) load(registerer prometheus.Registerer) error {
	if err := checkFormat(s.db); err != nil {
		return err
	}
	value, err := lookup(s.db, retentionKey)
	if err != nil {
		return err
	}
	retention, err := decodeRetention(value)
	if err != nil {
		return err
	}
	s.retention.Store(retention)
	return s.metrics.register(registerer)
}

// Close ends the sweep, waits for calls that nobody waits for any more, and
// closes the database.
func (s *Store) Close() error {
	s.stop()
	s.running.Wait()
	return errors.Join(s.db.Close(), s.lock.Close())
}

// Health is "down" when the disk has refused a write, "degraded" while damaged
// logs are known of, else "ok".
func (s *Store) Health(context.Context) capping.Health {
	health := capping.Health{Kind: "embedded", State: "ok"}
	if err := s.damaged.err(); err != nil {
		health.State, health.Error = "degraded", err.Error()
	}
	if err := s.broken(); err != nil {
		health.State, health.Error = "down", err.Error()
	}
	return health
}

// broken is why nothing can be written any more, nil while all is well.
func (s *Store) broken() error {
	if fault := s.fault.Load(); fault != nil {
		return *fault
	}
	return nil
}

// fail puts the store out of service: after a refused write nobody knows what
// is on the disk, so nothing may be allowed on top of it before a restart.
func (s *Store) fail(err error) error {
	err = fmt.Errorf("out of service until restarted: %w", err)
	if s.fault.CompareAndSwap(nil, &err) {
		s.logger.Error("the embedded store is out of service", "error", err)
		s.metrics.errors.WithLabelValues("write").Inc()
	}
	return s.broken()
}

// damage is what is known of unreadable logs. It names a few users at most.
type damage struct {
	sync.Mutex
	users map[capping.UserID]error
}

const maxDamaged = 1000

func (d *damage) add(user capping.UserID, err error) (isNew bool) {
	d.Lock()
	defer d.Unlock()
	if d.users == nil {
		d.users = make(map[capping.UserID]error)
	}
	if _, known := d.users[user]; known || len(d.users) >= maxDamaged {
		return false
	}
	d.users[user] = err
	return true
}

func (d *damage) remove(user capping.UserID) {
	d.Lock()
	defer d.Unlock()
	delete(d.users, user)
}

func (d *damage) err() error {
	d.Lock()
	defer d.Unlock()
	for user, err := range d.users {
		return fmt.Errorf("logs that cannot be read: %d, among them that of user %d: %w", len(d.users), user, err)
	}
	return nil
}
