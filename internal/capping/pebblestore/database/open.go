package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// The function Open opens the database in a directory. If the directory does not exist, Open creates the directory. The
// function Open returns an error if another process has the database open, the format is unknown, the disk is full, or
// ctx ends. If Open returns because ctx has ended, the process should exit, because Pebble goes on opening the database
// and cannot be stopped.
func Open(ctx context.Context, config Config) (*DB, error) {
	return open(ctx, config.withDefaults())
}

func open(ctx context.Context, config Config) (*DB, error) {
	ids, err := config.IDs.checked()
	if err != nil {
		return nil, err
	}
	config.IDs = ids
	d := newDB(config)
	there, err := config.hasDatabase()
	switch {
	case err != nil:
	case there:
		err = config.checkKnownIDs()
	default:
		err = config.checkCreation()
	}
	if err != nil {
		return nil, err
	}
	d.created = !there
	if d.lock, err = lock(config.FS, config.Path); err != nil {
		return nil, err
	}
	if err := d.openWithin(ctx, config); err != nil {
		return nil, err
	}
	return d, nil
}

func newDB(config Config) *DB {
	d := &DB{
		config: config,
		writes: make(chan struct{}, maxCalls), reads: make(chan struct{}, maxCalls), outage: newOutage(),
	}
	d.wide = config.IDs != (IDs{})
	d.changes.Store(d.wide)
	d.disk = New(config.FS, config.Path, func(err error) { _ = d.takeDown(err) })
	return d
}

// openWithin opens the database. If the database cannot be opened, openWithin releases the lock of the directory. If
// ctx ends or the disk refuses a write, openWithin returns without waiting for Pebble. After a refused write, Pebble
// would retry the write without end.
func (d *DB) openWithin(ctx context.Context, config Config) error {
	opened := make(chan error, 1)
	go func() { opened <- d.Rescue(context.Background(), func() error { return d.openDatabase(config) }) }()
	var err error
	select {
	case err = <-opened:
		if err == nil {
			return nil
		}
		return errors.Join(err, d.unlockDirectory())
	case <-ctx.Done():
		err = fmt.Errorf("stopped opening the store: %w", context.Cause(ctx))
	case <-d.down:
		err = errors.Unwrap(d.Broken())
	}
	go func() {
		if <-opened == nil {
			_ = d.DB.Close() // nobody uses this database
		}
	}()
	return errors.Join(err, d.unlockDirectory())
}

func (d *DB) openDatabase(config Config) (err error) {
	known, err := probe(config.FS, config.Path)
	if err != nil {
		return err
	}
	d.guard = clockGuard{config.ClockBound, known, time.Now()}
	if err := d.disk.Notes.Check(); err != nil {
		return err
	}
	if err := config.FS.RemoveAll(CopyFolder(config.FS, config.Path)); err != nil {
		return err // left by a backup that was in progress when the process was killed
	}
	if d.DB, err = pebble.Open(config.Path, d.options(config)); err != nil {
		return err
	}
	d.disk.Serve()
	if err := errors.Join(d.load(config), d.Broken()); err != nil {
		return errors.Join(err, d.DB.Close())
	}
	return nil
}

// closeTimeout is the time limit of Close for a store in service. The constant brokenTimeout is the time limit of Close
// for a store that is out of service.
const (
	closeTimeout  = 30 * time.Second
	brokenTimeout = 2 * time.Second
)

// The method Close waits for running calls whose caller has stopped waiting, and then closes the database. The method
// Close waits up to half a minute, or up to two seconds if the store is out of service. If closing takes longer, Close
// freezes the files instead of closing Pebble. If Close freezes the files, the writes of all calls that have already
// returned stay on the disk.
func (d *DB) Close() error {
	d.disk.EndPauses()
	if d.isIsolated.Load() {
		return d.unlockDirectory()
	}
	closed := make(chan error, 1)
	go func() {
		d.running.Wait()
		closed <- d.Rescue(context.Background(), func() error {
			if d.Broken() == nil {
				_ = d.Mark() // closing the database returns the same error
			}
			return d.DB.Close()
		})
	}()
	timeout := closeTimeout
	if d.Broken() != nil {
		timeout = brokenTimeout
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-closed:
	case <-d.isolated:
	case <-timer.C:
		_ = d.isolate(errors.New("close the store: the database did not respond in time"))
	}
	return errors.Join(err, d.unlockDirectory())
}

// unlockDirectory releases the lock of the store's directory as soon as this process can no longer change the
// directory.
func (d *DB) unlockDirectory() error {
	frozen := make(chan struct{})
	go func() {
		d.disk.Freeze()
		close(frozen)
	}()
	timer := time.NewTimer(brokenTimeout)
	defer timer.Stop()
	select {
	case <-frozen:
		return d.lock.Close()
	case <-timer.C:
		return errors.New(
			"close the store: the disk does not respond, so the directory stays locked until the process ends")
	}
}
