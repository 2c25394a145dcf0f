package pebblestore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
)

// pacingDir tells the test binary to be a process that gives permits until it is
// killed.
const pacingDir = "CAPPER_TEST_PACING_DIR"

// crashTargets are what the process and the test that kills it take from.
func crashTargets() []pacing.Target {
	ledger := pacingtest.Ledger()
	ledger.Pacer = "ledger"
	return []pacing.Target{
		{Pacer: "sms", Limits: []pacing.Limit{{Max: 100, Window: time.Second}}},
		{Pacer: "carrier", Limits: []pacing.Limit{{Max: 1, Window: 4 * time.Millisecond}}},
		ledger,
	}
}

// fullTargets are as crashTargets, so irregular that their logs are full again and
// again, and what makes them so.
func fullTargets() (targets []pacing.Target, asks []*pacing.Ask) {
	ledger := pacingtest.Ledger()
	ledger.Pacer = "full-ledger"
	irregular, asks := pacingtest.Irregular("irregular", 40)
	return []pacing.Target{irregular, {Pacer: "long", Limits: []pacing.Limit{{Max: 8000, Window: 102 * time.Second}}},
		ledger}, asks
}

// granted is an answer as the process tells it.
type granted struct {
	Ask   pacing.Ask
	Grant pacing.Grant
}

// pacingChild takes permits for ever, from several goroutines at once, and tells
// every grant on stdout.
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

// child is a process that tells its grants.
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

// A process that gives permits is killed, again and again: no window holds more than
// its limit over all of its lives, what was granted is recorded, and a request that
// was granted by one life has the same slots from the next.
func TestPacingOfAKilledProcess(t *testing.T) {
	t.Parallel()
	dir, oracle := t.TempDir(), pacingtest.NewOracle()
	for range 3 {
		told := killedChild(t, dir, 400)
		for i := range told {
			oracle.Add(&told[i].Ask, &told[i].Grant)
		}
		s := reopen(t, Config{Path: dir})
		for _, g := range told[len(told)-50:] {
			if g.Ask.Request != (pacing.Request{}) {
				again := take(t, s, &g.Ask)
				require.True(t, again.Replayed)
				oracle.Add(&g.Ask, &again)
			}
		}
		full, _ := fullTargets()
		require.Empty(t, faultsOf(t, s, oracle, crashTargets()))
		require.Empty(t, faultsOf(t, s, oracle, full))
		require.NoError(t, s.Close())
	}
}

// killedChild is what a process told before it was killed, after so many grants.
func killedChild(t *testing.T, dir string, grants int) (all []granted) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), pacingDir+"="+dir)
	child.Stderr = os.Stderr
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	r := bufio.NewReader(stdout)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil { // what is in the pipe when it is killed was answered before
			break
		}
		var told granted
		require.NoError(t, json.Unmarshal(line, &told))
		if all = append(all, told); len(all) == grants {
			require.NoError(t, child.Process.Kill())
		}
	}
	_ = child.Wait() // it was killed
	require.GreaterOrEqual(t, len(all), grants, "the child ended by itself")
	return all
}

// faultsOf takes more from the store, and tells what is wrong. The last target is a
// ledger.
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

// What a power cut leaves on the disk, with all, some or none of what was not synced,
// is enough to go on from.
func TestPacingAfterPowerLoss(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	require.Empty(t, powerLosses(t, disk, disk))
}

// The oracle would see a disk that lies: where what was answered was not synced, permits
// are granted twice.
func TestPacingStormsBiteALyingDisk(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	lying := &lyingDisk{FS: disk}
	faults := strings.Join(powerLosses(t, disk, lying), "\n")
	require.Contains(t, faults, "permits within")
	require.Contains(t, faults, "are recorded")
}

// powerLosses takes permits of a store on the disk, and goes on from copies that are
// taken of it meanwhile; it tells what was wrong. A disk that lies does so for some
// permits before the copy.
func powerLosses(t *testing.T, disk *vfs.MemFS, of vfs.FS) (faults []string) {
	t.Helper()
	s, targets := reopen(t, Config{Path: "/db", fs: of}), crashTargets()
	lying, _ := of.(*lyingDisk)
	g := pacingtest.NewGreedy([]pacing.Store{s}, targets...)
	g.Requests = 50
	defer g.End()
	g.Begin(8, rand.Uint64())
	for round := range uint64(3) {
		g.Takes(t, 1000)
		lying.begin()
		g.Takes(t, 4000)
		before := g.Oracle.Clone()
		cut := disk.CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: []int{0, 50, 100}[round], RNG: rand.New(rand.NewPCG(2, round)),
		})
		after := reopen(t, Config{Path: "/db", fs: cut})
		faults = append(faults, faultsOf(t, after, before, targets)...)
		require.NoError(t, after.Close())
		if lying != nil {
			break // the store refuses such a disk later on
		}
	}
	g.End()
	require.NoError(t, s.Close())
	return faults
}

// lyingDisk says that what is written to logs is synced, and from some time on it is
// not.
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
