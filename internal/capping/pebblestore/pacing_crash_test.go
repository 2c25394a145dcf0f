package pebblestore

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
)

// pacingDir is the environment variable that makes the test binary grant permits until it is killed.
const pacingDir = "CAPPER_TEST_PACING_DIR"

// crashTargets returns the targets from which the child process and the test take permits.
func crashTargets() []pacing.Target {
	ledger := pacingtest.Ledger()
	ledger.Pacer = "ledger"
	return []pacing.Target{
		{Pacer: "sms", Limits: []pacing.Limit{{Max: 100, Window: time.Second}}},
		{Pacer: "carrier", Limits: []pacing.Limit{{Max: 1, Window: 4 * time.Millisecond}}},
		ledger,
	}
}

// fullTargets returns targets like crashTargets and asks that fill their logs with irregular permits, so
// that the logs are merged repeatedly.
func fullTargets() (targets []pacing.Target, asks []*pacing.Ask) {
	ledger := pacingtest.Ledger()
	ledger.Pacer = "full-ledger"
	irregular, asks := pacingtest.Irregular("irregular", 40)
	return []pacing.Target{irregular, {Pacer: "long", Limits: []pacing.Limit{{Max: 8000, Window: 102 * time.Second}}},
		ledger}, asks
}

// granted is a grant in the output of the child process.
type granted struct {
	Ask   pacing.Ask
	Grant pacing.Grant
}

// pacingChild takes permits without end from several goroutines and writes every grant to stdout.
func pacingChild(dir string, stdout io.Writer) error {
	s, err := Open(context.Background(), Config{Path: dir})
	if err != nil {
		return err
	}
	c := &child{store: s, stdout: stdout}
	full, asks := fullTargets()
	for _, ask := range asks {
		c.take(*ask)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			ask := pacing.Ask{Targets: crashTargets(), MaxWait: pacing.MaxWait}
			if i < 2 {
				ask.Targets = full
			}
			for c.ok() {
				ask.Permits, ask.Request = 1+rand.IntN([]int{40, 400}[i%2]), pacing.Request{}
				if rand.IntN(2) == 0 {
					ask.Request = pacingtest.Request()
				}
				c.take(ask)
			}
		})
	}
	all.Wait()
	return c.err
}

// child is a process that reports its grants.
type child struct {
	store *Store

	mu     sync.Mutex
	stdout io.Writer
	err    error
}

func (c *child) ok() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil
}

func (c *child) take(ask pacing.Ask) {
	grant, err := c.store.TakePermits(context.Background(), &ask)
	line, failed := json.Marshal(granted{ask, grant})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err = errors.Join(err, failed); err == nil {
		_, err = c.stdout.Write(append(line, '\n'))
	}
	c.err = errors.Join(c.err, err)
}

// faultsOf takes more permits from the store and returns the faults. The last target is a ledger.
func faultsOf(t *testing.T, s *Store, oracle *pacingtest.Oracle, targets []pacing.Target) []string {
	t.Helper()
	g := pacingtest.NewGreedy([]pacing.Store{s}, targets...)
	g.Oracle, g.Requests = oracle, 50
	defer g.End()
	g.Begin(8, rand.Uint64())
	g.Takes(t, 5000)
	g.End()
	g.Settle(t)
	return g.Faults(t, targets[len(targets)-1])
}

// lyingDisk is a disk that stops syncing logs at some time but still reports success.
type lyingDisk struct {
	vfs.FS
	lies atomic.Bool
}

func (d *lyingDisk) begin() {
	if d != nil {
		d.lies.Store(true)
	}
}

func (d *lyingDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	return d.file(name, f), err
}

func (d *lyingDisk) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(from, to, category)
	return d.file(to, f), err
}

func (d *lyingDisk) file(name string, f vfs.File) vfs.File {
	if f != nil && strings.HasSuffix(name, ".log") {
		return &lyingFile{f, d}
	}
	return f
}

type lyingFile struct {
	vfs.File
	disk *lyingDisk
}

func (f *lyingFile) Sync() error {
	if f.disk.lies.Load() {
		return nil
	}
	return f.File.Sync()
}

func (f *lyingFile) SyncData() error { return f.Sync() }

func (f *lyingFile) SyncTo(int64) (bool, error) { return true, f.Sync() }
