//go:build storms

package pebblestore

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testkit"
)

// TestKill kills a process that records under load and checks that the logs contain every send that it
// answered as allowed.
func TestKill(t *testing.T) {
	t.Parallel()
	testKill(t, IDs{})
}

// TestKillOfImages is TestKill with a store for images.
func TestKillOfImages(t *testing.T) {
	t.Parallel()
	testKill(t, uuids)
}

func testKill(t *testing.T, ids IDs) {
	dir := t.TempDir()
	for round := range 2 {
		child := exec.Command(os.Args[0], "-test.run=^$")
		child.Env = append(os.Environ(), crashDir+"="+dir, childKind+"="+ids.Kind)
		child.Stderr = os.Stderr
		stdout, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		all := readTold(t, stdout, 8_000*(round+1), child.Process.Kill)
		_ = child.Wait() // the process was killed
		s, err := Open(context.Background(), Config{Path: dir, IDs: ids})
		require.NoError(t, err)
		answered := make(map[told]bool, len(all))
		for _, told := range all {
			answered[told] = true
		}
		requireAnswers(t, s, answered)
		requireCounted(t, s)
		require.NoError(t, s.Close())
	}
}

// requireAnswers checks that each user's log contains every allowed send once and no released send.
func requireAnswers(t *testing.T, s *Store, answered map[told]bool) {
	t.Helper()
	logs := make(map[capping.UserID]map[capping.Token]bool)
	for told, allowed := range answered {
		recorded, ok := logs[told.user]
		if !ok {
			log, err := s.Log(context.Background(), told.user)
			require.NoError(t, err)
			recorded = tokens(log)
			require.Equal(t, log.Len(), len(recorded), "user %d: a send was recorded twice", told.user)
			logs[told.user] = recorded
		}
		if recorded[capping.Message{ID: crashMessage(told.message)}.Token()] != allowed {
			t.Fatalf("message %d to user %d: answered %t", told.message, told.user, allowed)
		}
	}
}

// TestPowerLoss copies the disk during calls as a power cut would leave it, with all, some or none of the
// unsynced data. Each copy must contain every answered allowed and replayed send and every answered release,
// and no denied send.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	testPowerLoss(t, IDs{})
}

// TestPowerLossOfImages is TestPowerLoss with a store for images.
func TestPowerLossOfImages(t *testing.T) {
	t.Parallel()
	testPowerLoss(t, uuids)
}

func testPowerLoss(t *testing.T, ids IDs) {
	disk := vfs.NewCrashableMem()
	s, err := Open(context.Background(), Config{Path: "/db", IDs: ids, fs: disk})
	require.NoError(t, err)
	for round := range uint64(9) {
		var mu sync.Mutex
		answered := make(map[told]bool) // true: allowed, false: released
		var calls sync.WaitGroup
		for worker := range uint64(4) {
			calls.Go(func() {
				for n := range uint64(10) {
					sendAndRelease(t, s, 100*round+10*worker+n, func(told told, allowed bool) {
						mu.Lock()
						defer mu.Unlock()
						answered[told] = allowed
					})
				}
			})
		}
		testkit.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(answered) > 300 })
		mu.Lock()
		before := maps.Clone(answered)
		mu.Unlock()
		cut := disk.CrashClone(vfs.CrashCloneCfg{
			UnsyncedDataPercent: []int{0, 50, 100}[round%3], RNG: rand.New(rand.NewPCG(1, round)),
		})
		calls.Wait()
		requireKept(t, cut, ids, before)
	}
	require.NoError(t, s.Close())
}

// sendAndRelease sends message n to some users and releases the send of a third of them.
func sendAndRelease(t *testing.T, s *Store, n uint64, answer func(told, bool)) {
	users := make([]capping.UserID, 1+rand.IntN(100))
	for i := range users {
		users[i] = person(s, capping.UserID(n*1000)+capping.UserID(i))
	}
	verdicts := make([]capping.Verdict, len(users))
	if err := s.Filter(context.Background(), benchBatch(crashMessage(n), users), verdicts); err != nil {
		t.Error(err)
		return
	}
	back := users[:len(users)/3]
	for _, user := range users[len(back):] {
		answer(told{n, user}, true)
	}
	released := make([]capping.Released, len(back))
	token := capping.Message{ID: crashMessage(n)}.Token()
	if err := s.Release(context.Background(), token, 0, back, released); err != nil {
		t.Error(err)
		return
	}
	for _, user := range back {
		answer(told{n, user}, false)
	}
}

func requireKept(t *testing.T, disk vfs.FS, ids IDs, answered map[told]bool) {
	s, err := Open(context.Background(), Config{Path: "/db", IDs: ids, fs: disk})
	require.NoError(t, err)
	requireAnswers(t, s, answered)
	requireCounted(t, s)
	require.NoError(t, s.Close())
}
