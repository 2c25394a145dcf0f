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
