package pebblestore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"capper/internal/capping"
)

// Open opens the store in a directory, which is made when it is absent. It
// fails when another process has it open, when its format is unknown and when
// the disk is full, and gives up when ctx ends. After it has given up, the
// process should end: Pebble cannot be stopped while it is being opened.
func Open(ctx context.Context, config Config) (*Store, error) {
	s, err := open(ctx, config.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("embedded store %q: %w", config.Path, err)
	}
	return s, nil
}

func open(ctx context.Context, config Config) (*Store, error) {
	s := newStore(config)
	there, err := config.exists()
	if err == nil && !there {
		err = config.mayCreate()
	}
	if err != nil {
		return nil, err
	}
	s.created = !there
	if s.lock, err = lockDirectory(config); err != nil {
		return nil, err
	}
	if err := s.openWithin(ctx, config); err != nil {
		return nil, err
	}
	if err := s.metrics.register(config.Registerer); err != nil {
		return nil, errors.Join(err, s.db.Close(), s.lock.Close())
	}
	segments := segmentsFor(config.CacheBytes / 4 * 3 / stripeCount)
	for i := range s.stripes {
		s.stripes[i].cache = newLogCache(segments)
	}
	if s.created {
		s.logger.Warn("an embedded store was created, empty: everybody may be sent to", "path", config.Path)
	} else {
		s.logger.Info("embedded store open", "path", config.Path)
	}
	sweeping, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Go(func() { s.keepSweeping(sweeping, config.SweepInterval) })
	return s, nil
}

func newStore(config Config) *Store {
	s := &Store{
		config: config,
		clock:  config.Clock, logger: config.Logger, memory: capping.NewMessageMemory(), metrics: newMetrics(),
		writes: make(chan struct{}, maxCalls), reads: make(chan struct{}, maxCalls), outage: newOutage(),
	}
	s.disk = newDisk(config.fs, config.Path, func(err error) { _ = s.fail(err) })
	s.calls.New = func() any { return new(call) }
	s.workers.New = func() any { return &worker{reader: reader{store: s}} }
	return s
}

// openWithin opens the database until ctx ends or the disk refuses a write,
// after which Pebble would try again without end. It gives the lock back when
// it fails.
func (s *Store) openWithin(ctx context.Context, config Config) error {
	opened := make(chan error, 1)
	go func() { opened <- s.rescued(func() error { return s.openDatabase(config) }) }()
	var err error
	select {
	case err = <-opened:
		if err == nil {
			return nil
		}
		return errors.Join(err, s.abandon())
	case <-ctx.Done():
		err = fmt.Errorf("gave up opening it: %w", context.Cause(ctx))
	case <-s.down:
		err = errors.Unwrap(s.broken())
	}
	go func() {
		if <-opened == nil {
			_ = s.db.Close() // nobody knows that it was opened
		}
	}()
	return errors.Join(err, s.abandon())
}

func (s *Store) openDatabase(config Config) (err error) {
	known, err := probe(config.fs, config.Path)
	if err != nil {
		return err
	}
	s.guard = clockGuard{config.ClockBound, known, time.Now()}
	if err := s.disk.notes.check(); err != nil {
		return err
	}
	if s.db, err = pebble.Open(config.Path, s.options(config)); err != nil {
		return err
	}
	s.disk.serving.Store(true)
	if err := errors.Join(s.load(config), s.broken()); err != nil {
		return errors.Join(err, s.db.Close())
	}
	return nil
}

// probeSize is what a store that opens must be able to write.
const probeSize = 4 << 20

// probe writes a file and removes it: a database that finds no space while it
// is being opened does not say so. The file's time is that of the file system.
func probe(fs vfs.FS, dir string) (at time.Time, err error) {
	name := fs.PathJoin(dir, "space.probe")
	content := make([]byte, probeSize)
	_, _ = rand.Read(content) // nothing that a file system could make small; it never fails
	file, err := fs.Create(name, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = file.Write(content)
		if err == nil {
			err = file.Sync()
		}
		if err == nil {
			at, err = fileTime(fs, name)
		}
		err = errors.Join(err, file.Close(), fs.Remove(name))
	}
	if err != nil {
		return at, fmt.Errorf("no room to work, at least %d MiB must be free: %w", probeSize>>20, err)
	}
	return at, nil
}

// How long Close waits for calls and the database, and for them when the store
// is out of service.
const (
	closeTimeout  = 30 * time.Second
	brokenTimeout = 2 * time.Second
)

// Close ends the sweep, waits for calls that nobody waits for any more, and
// closes the database. It waits half a minute, and two seconds when the store
// is out of service; then it leaves Pebble as it is, with the files untouched
// from that moment on, which loses nothing that was answered.
func (s *Store) Close() error {
	s.stop()
	close(s.disk.quit)
	if s.ruined.Load() {
		return s.abandon()
	}
	closed := make(chan error, 1)
	go func() {
		s.running.Wait()
		closed <- s.rescued(func() error {
			if s.broken() == nil {
				_ = s.mark() // what it meets, closing the database meets too
			}
			return s.db.Close()
		})
	}()
	timeout := closeTimeout
	if s.broken() != nil {
		timeout = brokenTimeout
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-closed:
	case <-s.wrecked:
	case <-timer.C:
		_ = s.wreck(errors.New("it was closed while the database did not answer"))
	}
	return errors.Join(err, s.abandon())
}

// abandon gives the directory back, when it is certain that nothing in it is
// changed any more.
func (s *Store) abandon() error {
	frozen := make(chan struct{})
	go func() {
		s.disk.freeze()
		close(frozen)
	}()
	timer := time.NewTimer(brokenTimeout)
	defer timer.Stop()
	select {
	case <-frozen:
		return s.lock.Close()
	case <-timer.C:
		return errors.New("the disk does not answer: the directory stays locked until the process ends")
	}
}
