//go:build storms

package pebblestore

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// TestTorture injects random faults under load, round by round, and checks all logs with the oracle after
// each round. CAPPER_TORTURE_MINUTES (default 0.1) sets its length, CAPPER_TORTURE_SEED its random seed, and
// CAPPER_TORTURE_IDS (default dense) the kind of its users' ids.
func TestTorture(t *testing.T) {
	t.Parallel()
	rng, rounds := testkit.Torture(t, 0.1)
	r := &torture{T: t, rng: rng, faults: testkit.Faults{}, ids: idsOfKind(os.Getenv("CAPPER_TORTURE_IDS"))}
	t.Cleanup(func() { t.Log(r.report()) }) // a failing round ends the test
	for round := range rounds {
		r.round(round)
	}
}

// TestTortureBitesALyingDisk checks that the oracle notices a disk that reports syncs without syncing: a
// power cut then loses answered sends.
func TestTortureBitesALyingDisk(t *testing.T) {
	t.Parallel()
	r := &torture{T: t, rng: rand.New(rand.NewPCG(1, 0)), disk: vfs.NewCrashableMem(),
		storm: newStorm(100_000_000, 1, false)}
	lying := &lyingDisk{FS: r.disk}
	var cut *vfs.MemFS
	r.serve(lying, func(*Store) {
		lying.begin()
		r.storm.answered(t, 200)
		cut = r.cut(r.disk, 0)
	})
	require.NoError(t, cut.Remove("/db.id"), "which may tell that the newest sends are gone, and refuse the store")
	r.serve(cut, func(*Store) { r.storm.answered(t, 200) }) // users whose sends are lost receive others
	store := reopen(t, Config{Path: "/db", fs: cut})
	r.storm.settle(t, store)
	found := r.storm.verify(t, store)
	require.NotZero(t, found.missing)
	require.NotZero(t, found.over)
	require.NotZero(t, found.unheeded)
	require.NoError(t, store.Close())
}
