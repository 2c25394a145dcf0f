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

// Watcher holds the current configuration and reads the file again when its bytes change. A Watcher is safe for
// concurrent use.
type Watcher struct {
	file  string
	clock func() time.Time
	parse func(file string, data []byte) (*Config, map[string]string, error)

	// Only the goroutine of Run uses these fields. Reading, parsing and applying hold no lock, so that a slow file
	// delays nobody who asks for the status.
	seen    []byte            // bytes of the last check; nil: the last report was that the file is unreadable
	missed  bool              // the file could not be read at the last check
	given   map[string]string // values of the current file, by path
	waiting func() error      // applies the content of seen after a temporary refusal; nil: there is none

	mu     sync.Mutex // guards the fields below
	inUse  *Config
	status Status
}

// Status describes the result of the last reload.
type Status struct {
	Version  string    // version of the current configuration
	LoadedAt time.Time // when the configuration was applied
	Error    string    // why the present file was refused; "" when it is in use
	ErrorAt  time.Time
	Reloads  int // accepted reloads since the start
	Refused  int // refused reloads since the start
}

// NewWatcher loads the file and returns a Watcher for it.
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

// Current returns the current configuration.
func (w *Watcher) Current() *Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inUse
}

// File returns the name of the watched file.
func (w *Watcher) File() string { return w.file }

// Status returns the result of the last reload.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// ErrNotYet marks the error of a configuration that is rejected only for now. The Watcher tries the configuration again
// at each check of the file.
var ErrNotYet = errors.New("change is not possible yet")

// Run polls the file until ctx ends. The function apply puts a changed configuration into use; after an error it has
// changed nothing. The function reloaded receives nil for every accepted change, and the error of every refused one.
// A signal on asked checks the file at once, and then answer receives whether the file had changed. A nil channel
// disables this.
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

// poll reads the file and applies it if it has changed since the last check. An editor may leave a file absent or
// empty for a moment when it replaces the file; the next poll then finds the new content.
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

// unreadable reports a file that cannot be read, once. A file that is absent at the first check is no fault. When the
// kubelet replaces the symlink of a mounted ConfigMap, a reader may find that the old target directory has been
// removed.
func (w *Watcher) unreadable(err error) (changed bool, _ error) {
	first := !w.missed
	w.missed = true
	if first && errors.Is(err, fs.ErrNotExist) || w.seen == nil {
		return false, nil
	}
	w.seen = nil
	return true, w.refuse(fmt.Errorf("read configuration: %w", err))
}

// again retries a configuration that was refused temporarily. A repeated refusal is not reported.
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

// put applies a configuration if a reload may change everything that differs.
func (w *Watcher) put(next *Config, given map[string]string, apply func(*Config) error) error {
	current := w.Current() // only this goroutine changes the current configuration
	if err := current.reloadable(w.file, next, w.given, given); err != nil {
		return err
	}
	if err := apply(next); err != nil { // also with the same version, because the log level may have changed
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
