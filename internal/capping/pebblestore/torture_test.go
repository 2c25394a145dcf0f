package pebblestore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/live/livetest"
	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testkit"
)

// torture is a series of rounds with faults, in which several stores are used one after the other.
type torture struct {
	*testing.T
	rng    *rand.Rand
	disk   *vfs.MemFS // the disk of the store, which is closed between faults
	storm  *storm     // the load of this round
	latest string     // the round and its fault
	faults testkit.Faults
	tally  tally
	found  violations
	paced  pacingtest.Tally
	shared pacingtest.Tally // of callers of shares and keys
	lists  livetest.Tally
	ids    IDs // of the store
}

// roundsOfAStore is the number of rounds with one store. A new store bounds the memory of the in-memory
// disks.
const roundsOfAStore = 20

// round runs a storm under a fault, opens the store again, and checks all replies of this round and the
// round before.
func (r *torture) round(n int) {
	drawn := tortures[r.rng.IntN(len(tortures))]
	r.latest = fmt.Sprintf("round %d, %s", n, drawn.name)
	r.faults[drawn.name]++
	before := r.storm
	if (n-1)%roundsOfAStore == 0 {
		r.disk, before = vfs.NewCrashableMem(), nil
	}
	r.storm = newStorm(capping.UserID(n%roundsOfAStore+1)*100_000_000, r.rng.Uint64(), r.ids != IDs{})
	drawn.inflict(r)
	store := reopen(r.T, Config{Path: "/db", IDs: r.ids, fs: r.disk})
	r.storm.settle(r.T, store)
	found := r.storm.verify(r.T, store)
	if before != nil {
		found.add(before.verify(r.T, store))
	}
	r.found.add(found)
	r.tally.add(r.storm.tally)
	r.lists.Add(r.storm.lists.Tally())
	require.Zero(r, found, r.latest)
	require.Empty(r, faultsOf(r.T, store, r.storm.oracle, r.storm.pacers), r.latest)
	require.Empty(r, r.faultsOfShares(store), r.latest)
	require.NoError(r, store.Close())
}

// serve opens the store on the file system, puts load on it until the fault has happened, and closes it.
func (r *torture) serve(fs vfs.FS, fault func(*Store)) {
	store := reopen(r.T, Config{Path: "/db", IDs: r.ids, fs: fs})
	r.load(newLocal(store), func() { fault(store) })
	_ = store.Close() // the database may be broken; the oracle checks what matters
}

// load puts load on the store until the fault has happened.
func (r *torture) load(store target, fault func()) {
	s := r.storm
	s.begin(store)
	g := pacingtest.NewGreedy([]pacing.Store{store}, s.pacers...)
	g.Oracle, g.Requests, g.Rest, g.Patience = s.oracle, 50, 2*time.Millisecond, patience
	g.Returns = 30
	g.Begin(4, r.rng.Uint64())
	c := r.callers(store)
	c.Begin(4, r.rng.Uint64())
	defer func() {
		s.end()
		g.End()
		c.End()
		r.paced.Add(g.Tally())
		r.shared.Add(c.Tally())
		if s.silent {
			s.oracle = s.cut
		}
	}()
	s.answered(r.T, 40)
	fault()
}

// callers returns callers of shares and keys.
func (r *torture) callers(store pacing.Store) *pacingtest.Callers {
	c := pacingtest.NewCallers(r.storm.shared, r.storm.oracle, store, store)
	c.Rest, c.Patience = 2*time.Millisecond, patience
	return c
}

// faultsOfShares takes more permits of shares and keys, and returns the faults.
func (r *torture) faultsOfShares(store *Store) []string {
	c := r.callers(store)
	defer c.End()
	c.Begin(4, r.rng.Uint64())
	testkit.Eventually(r.T, func() bool { return c.Tally().Calls > 200 })
	c.End()
	c.Settle(r.T)
	r.shared.Add(c.Tally())
	return c.Faults(r.T)
}

// cut returns the disk after a power cut under load, with percent of the unsynced data. Later replies are
// ignored.
func (r *torture) cut(disk *vfs.MemFS, percent int) (cut *vfs.MemFS) {
	rng := rand.New(rand.NewPCG(r.rng.Uint64(), 0))
	r.storm.silence(func() {
		cut = disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
	})
	return cut
}

// percent returns a random share of the unsynced data.
func (r *torture) percent() int { return []int{0, 50, 100}[r.rng.IntN(3)] }

func (r *torture) report() string {
	var b strings.Builder
	b.WriteString(r.faults.String())
	v := r.found
	fmt.Fprintf(&b, "%6d  violations (over a limit %d, doubled %d, allowed but missing %d, "+
		"denied but recorded %d, "+
		"misjudged by a shadow limit %d, miscounted %d, released but recorded %d, "+
		"without a change to a set %d)\n        %v\n        %v\n        shares and keys: %v\n        %v",
		v.total(), v.over, v.doubled, v.missing,
		v.deniedButRecorded, v.misjudged, v.miscounted, v.releasedButRecorded, v.unheeded, r.tally, &r.paced, &r.shared,
		&r.lists)
	if r.Failed() {
		fmt.Fprintf(&b, "\n        it ended in %s", r.latest)
	}
	return b.String()
}
