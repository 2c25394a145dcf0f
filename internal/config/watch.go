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

// Watcher holds the current configuration, and reads the configuration file again when its bytes change. A Watcher is
// safe for concurrent use.
type Watcher struct {
	file  string
	clock func() time.Time
	parse func(file string, data []byte) (*Config, map[string]string, error)

	// These fields need no lock, because only the goroutine of Run uses the fields. Run holds no lock while it reads,
	// parses and applies a file, so that a slow file does not delay callers of Status.
	seen    []byte            // content of the file at the last check; nil: Run has reported an unreadable file
	missed  bool              // the file could not be read at the last check
	given   map[string]string // values of the current file, by path
	waiting func() error      // applies the content of "seen" again after ErrNotYet; nil: nothing waits

	mu     sync.Mutex // guards the fields below
	inUse  *Config
	status Status
}

// Status describes the result of the last reload of the configuration.
type Status struct {
	Version  string    // version of the current configuration
	LoadedAt time.Time // time at which the configuration was applied
	Error    string    // reason why the changed file was rejected; "": the file is in use
	ErrorAt  time.Time
	Reloads  int // number of accepted reloads since the start
	Refused  int // number of rejected reloads since the start
}

// NewWatcher loads the configuration file and returns a Watcher for it.
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

// Status returns the result of the last reload of the configuration.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// ErrNotYet marks the error of a configuration that cannot be applied yet, for example because it needs segments that
// are not published. If an error is marked with ErrNotYet, the Watcher tries the configuration again at each check of
// the file.
var ErrNotYet = errors.New("change is not possible yet")

// Run checks the configuration file at the given interval until ctx ends. Run passes each changed configuration to the
// function "apply". If the function "apply" returns an error, the function must leave everything unchanged. Run calls
// the function "reloaded" with nil for each accepted change, and with the error for each rejected change of the file.
// After a signal on the Go channel "asked", Run checks the file immediately, and tells the function "answer" whether
// the file had changed. If "asked" is nil, there are no signals.
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

// poll() reads the configuration file, and applies the file if the content has changed since the last check. While an
// editor replaces the configuration file, the file may be absent or empty for a moment. The next call of poll() finds
// the complete new file.
func (w *Watcher) poll(apply func(*Config) error) (changed bool, err error) {
	data, err := readRegular(w.file)
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

// readRegular reads a file, and rejects named pipes and other files whose reader may wait for ever.
func readRegular(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: must be a regular file", file)
	}
	return yamltree.ReadFile(file)
}

// The method "unreadable" reports, a single time, that the configuration file cannot be read. The method "unreadable"
// reports an absent file only at the second check, because the file may be absent for a moment. For example, while the
// kubelet replaces the symlink of a mounted ConfigMap, the old symlink leads to a removed directory.
func (w *Watcher) unreadable(err error) (changed bool, _ error) {
	first := !w.missed
	w.missed = true
	if first && errors.Is(err, fs.ErrNotExist) || w.seen == nil {
		return false, nil
	}
	w.seen = nil
	return true, w.refuse(fmt.Errorf("read configuration: %w", err))
}

// again() tries once more to apply a configuration that was rejected temporarily. If the configuration is still
// rejected temporarily, again() returns false and no error.
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

// The method put applies a new configuration, unless the configuration changes a key that needs a restart.
func (w *Watcher) put(next *Config, given map[string]string, apply func(*Config) error) error {
	current := w.Current() // only this goroutine changes the current configuration
	if err := current.reloadable(w.file, next, w.given, given); err != nil {
		return err
	}
	if err := apply(next); err != nil { // even if the version is the same, because the log level may have changed
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
