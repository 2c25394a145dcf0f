package config

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"capper/internal/yamltree"
)

// Watcher keeps the configuration in force and reads the file again when its
// bytes change. It is safe for concurrent use.
type Watcher struct {
	file  string
	clock func() time.Time

	mu     sync.Mutex
	seen   []byte // the bytes last judged, good or bad
	inUse  *Config
	status Status
}

// Status is how the last reload went.
type Status struct {
	Version  string    // of the configuration in force
	LoadedAt time.Time // when it was put in force
	Error    string    // why the file as it is now was refused; "" when it is in force
	ErrorAt  time.Time
	Reloads  int // accepted since start
	Refused  int // refused since start
}

// NewWatcher loads the file.
func NewWatcher(file string, clock func() time.Time) (*Watcher, error) {
	data, err := yamltree.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	c, err := Parse(file, data)
	if err != nil {
		return nil, err
	}
	return &Watcher{file: file, clock: clock, seen: data, inUse: c, status: Status{Version: c.Version, LoadedAt: clock()}}, nil
}

// Current is the configuration in force.
func (w *Watcher) Current() *Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inUse
}

// Status is how the last reload went.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// Run polls the file until ctx ends. apply puts a changed configuration in
// force; when it returns an error it has changed nothing. reloaded is told of
// every change that was accepted (nil) or refused (why).
func (w *Watcher) Run(ctx context.Context, interval time.Duration, apply func(*Config) error, reloaded func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if changed, err := w.poll(apply); changed {
				reloaded(err)
			}
		}
	}
}

// poll reads the file and judges it when it has changed since it was last
// judged. An editor that replaces a file leaves it absent or empty for a
// moment: the next poll finds what it wrote.
func (w *Watcher) poll(apply func(*Config) error) (changed bool, err error) {
	data, err := yamltree.ReadFile(w.file)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		changed = w.seen != nil
		w.seen = nil
		return changed, w.refuse(fmt.Errorf("read configuration: %w", err))
	}
	if w.seen != nil && bytes.Equal(data, w.seen) {
		return false, nil
	}
	w.seen = data
	next, err := Parse(w.file, data)
	if err == nil {
		err = w.inUse.reloadable(w.file, next)
	}
	if err == nil && next.Version != w.inUse.Version {
		err = apply(next)
	}
	if err != nil {
		return true, w.refuse(err)
	}
	w.inUse = next
	w.status.Reloads++
	w.status.Version, w.status.LoadedAt, w.status.Error, w.status.ErrorAt = next.Version, w.clock(), "", time.Time{}
	return true, nil
}

func (w *Watcher) refuse(err error) error {
	w.status.Refused++
	w.status.Error, w.status.ErrorAt = err.Error(), w.clock()
	return err
}
