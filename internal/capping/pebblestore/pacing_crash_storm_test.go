//go:build storms

package pebblestore

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
)

// TestPacingOfAKilledProcess kills a process that grants permits repeatedly. No window may exceed its limit
// over all starts, every grant must be recorded, and a repeated request must get the same slots after a
// restart.
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

// killedChild runs a process, kills it after some grants, and returns the grants that it reported.
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
		if err != nil { // data in the pipe was answered before the kill
			break
		}
		var told granted
		require.NoError(t, json.Unmarshal(line, &told))
		if all = append(all, told); len(all) == grants {
			require.NoError(t, child.Process.Kill())
		}
	}
	_ = child.Wait() // the process was killed
	require.GreaterOrEqual(t, len(all), grants, "the child ended by itself")
	return all
}

// TestPacingAfterPowerLoss checks that a store can continue after a power cut, with all, some or none of the
// unsynced data.
func TestPacingAfterPowerLoss(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	require.Empty(t, powerLosses(t, disk, disk))
}

// TestPacingStormsBiteALyingDisk checks that the oracle notices a disk that reports syncs without syncing:
// permits are then granted twice.
func TestPacingStormsBiteALyingDisk(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	lying := &lyingDisk{FS: disk}
	faults := strings.Join(powerLosses(t, disk, lying), "\n")
	require.Contains(t, faults, "permits within")
	require.Contains(t, faults, "are recorded")
}

// powerLosses takes permits from a store, opens copies of its disk after power cuts, and returns the faults. The
// store uses the file system of, which may lie about syncs to disk. A lying disk loses some permits before the copy.
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
		if lying != nil { // an operator continues without the lost permits
			require.NoError(t, cut.Remove("/db.id"))
		}
		after := reopen(t, Config{Path: "/db", fs: cut})
		faults = append(faults, faultsOf(t, after, before, targets)...)
		require.NoError(t, after.Close())
		if lying != nil {
			break // the store rejects such a disk later
		}
	}
	g.End()
	require.NoError(t, s.Close())
	return faults
}
