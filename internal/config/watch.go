package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"capper/internal/yamltree"
)

// Watcher keeps the configuration in force and reads the file again when its
// bytes change. It is safe for concurrent use.
type Watcher struct {
	file  string
	clock func() time.Time
	parse func(file string, data []byte) (*Config, map[string]string, error)

	// Of Run's goroutine alone: reading, parsing and applying hold no lock, so
	// that a file that takes long holds up nobody who asks for the status.
	seen    []byte            // the bytes last judged, good or bad; nil: that it could not be read was
	missed  bool              // the file could not be read at the last look
	given   map[string]string // what the file in use gives, by path
	waiting func() error      // puts what seen says in force, when that was refused for now; nil: it was not

	mu     sync.Mutex // over what follows
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
	c, given, err := parse(file, data)
	if err != nil {
		return nil, err
	}
	return &Watcher{
		file: file, clock: clock, parse: parse, seen: data, given: given,
		inUse: c, status: Status{Version: c.Version, LoadedAt: clock()},
	}, nil
}

// Current is the configuration in force.
func (w *Watcher) Current() *Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inUse
}

// File is the file that is watched.
func (w *Watcher) File() string { return w.file }

// Status is how the last reload went.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// ErrNotYet is in the error of what refuses a configuration for now: it is tried
// again with every look at the file.
var ErrNotYet = errors.New("change is not possible yet")

// Run polls the file until ctx ends. apply puts a changed configuration in
// force; when it returns an error it has changed nothing. reloaded is told of
// every change that was accepted (nil) or refused (why). A signal on asked has
// the file looked at now, then answer is told whether it had changed; nil: nobody asks.
func (w *Watcher) Run(ctx context.Context, interval time.Duration, apply func(*Config) error, reloaded func(error),
	asked <-chan os.Signal, answer func(changed bool)) {
	look := func() (changed bool) {
		changed, err := w.poll(apply)
		if changed {
			reloaded(err)
		}
		return changed
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			look()
		case <-asked:
			answer(look())
		}
	}
}

// poll reads the file and judges it when it has changed since it was last
// judged. An editor that replaces a file leaves it absent or empty for a
// moment: the next poll finds what it wrote.
func (w *Watcher) poll(apply func(*Config) error) (changed bool, err error) {
	data, err := yamltree.ReadFile(w.file)
	if err != nil {
		return w.unreadable(err)
	}
	w.missed = false
	if w.seen != nil && bytes.Equal(data, w.seen) {
		return w.again()
	}
	w.seen, w.waiting = data, nil
	next, given, err := w.parse(w.file, data)
	if err == nil {
		err = w.put(next, given, apply)
	}
	if err == nil {
		return true, nil
	}
	if errors.Is(err, ErrNotYet) {
		w.waiting = func() error { return w.put(next, given, apply) }
	}
	return true, w.refuse(err)
}

// unreadable judges a file that could not be read, once. That it is absent is no fault at the first
// look: who came through the symlink of a mounted ConfigMap just before the kubelet swapped it may
// find the directory removed to which it led.
func (w *Watcher) unreadable(err error) (changed bool, _ error) {
	first := !w.missed
	w.missed = true
	if first && errors.Is(err, fs.ErrNotExist) || w.seen == nil {
		return false, nil
	}
	w.seen = nil
	return true, w.refuse(fmt.Errorf("read configuration: %w", err))
}

// again tries what was refused for now. That it still is is no news.
func (w *Watcher) again() (changed bool, err error) {
	if w.waiting == nil {
		return false, nil
	}
	err = w.waiting()
	if errors.Is(err, ErrNotYet) {
		return false, nil
	}
	w.waiting = nil
	if err != nil {
		return true, w.refuse(err)
	}
	return true, nil
}

// put puts a configuration in force that can be reloaded.
func (w *Watcher) put(next *Config, given map[string]string, apply func(*Config) error) error {
	current := w.Current() // nobody else changes it
	if err := current.reloadable(w.file, next, w.given, given); err != nil {
		return err
	}
	if err := apply(next); err != nil { // also with the same version: the level of the log may have changed
		return err
	}
	w.given = given
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inUse = next
	w.status.Reloads++
	w.status.Version, w.status.LoadedAt, w.status.Error, w.status.ErrorAt = next.Version, w.clock(), "", time.Time{}
	return nil
}

func (w *Watcher) refuse(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status.Refused++
	w.status.Error, w.status.ErrorAt = err.Error(), w.clock()
	return err
}
