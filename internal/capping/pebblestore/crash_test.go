package pebblestore

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testkit"
)

// crashDir tells the test binary to be the process that is killed.
const crashDir = "CAPPER_TEST_CRASH_DIR"

// crashChild records sends for ever, from several goroutines at once, and
// tells every answered allowed on stdout: message (8), user (4).
func crashChild(dir string, stdout io.Writer) error {
	s, err := Open(context.Background(), Config{Path: dir})
	if err != nil {
		return err
	}
	var failed error
	var mu sync.Mutex
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := uint64(worker); ; n += 4 {
				told, err := recordSome(s, n)
				mu.Lock()
				if err == nil {
					_, err = stdout.Write(told)
				}
				failed = err
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return failed
}

// recordSome sends message n to 1 to 2,000 users and lists those allowed.
func recordSome(s *Store, n uint64) (all []byte, err error) {
	users := make([]capping.UserID, 1+rand.IntN(1<<rand.IntN(12)))
	for i := range users {
		users[i] = rand.Uint32N(100_000)
	}
	users, _ = capping.Distinct(users)
	verdicts := make([]capping.Verdict, len(users))
	err = s.Filter(context.Background(), benchBatch(crashMessage(n), users), verdicts)
	for i, v := range verdicts {
		if v.Outcome == capping.Allowed {
			all = append(all, encodeTold(told{n, users[i]})...)
		}
	}
	return all, err
}

func encodeTold(t told) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, t.message), t.user)
}

func crashMessage(n uint64) string { return fmt.Sprintf("crash-%d", n) }

// TestKill kills a process that records under load and demands every allowed
// that it answered back from the logs.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for round := range 2 {
		child := exec.Command(os.Args[0], "-test.run=^$")
		child.Env = append(os.Environ(), crashDir+"="+dir)
		child.Stderr = os.Stderr
		stdout, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		all := readTold(t, stdout, 8_000*(round+1), child.Process.Kill)
		_ = child.Wait() // it was killed
		s, err := Open(context.Background(), Config{Path: dir})
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

// requireAnswers demands that each user's log holds what was answered allowed,
// once, and not what was released.
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

type told struct {
	message uint64
	user    capping.UserID
}

// readTold reads what a child tells, kills it after so many, and reads on:
// what is in the pipe by then was answered before.
func readTold(t *testing.T, stdout io.Reader, killAfter int, kill func() error) (all []told) {
	r := bufio.NewReader(stdout)
	var record [12]byte
	for {
		if _, err := io.ReadFull(r, record[:]); err != nil {
			require.GreaterOrEqual(t, len(all), killAfter, "the child ended by itself")
			return all
		}
		all = append(all, told{binary.LittleEndian.Uint64(record[:]), binary.LittleEndian.Uint32(record[8:])})
		if len(all) == killAfter {
			require.NoError(t, kill())
		}
	}
}

func tokens(log capping.Log) map[capping.Token]bool {
	tokens := make(map[capping.Token]bool)
	for _, e := range log.Entries() {
		tokens[e.Token] = true
	}
	return tokens
}

// TestPowerLoss takes copies of the disk as it would be after a power cut, with
// all, some or none of what was not synced, while calls are under way. Every
// allowed and replayed that was answered before is in each copy, every denial
// recorded nothing, and a release that was answered stays.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	disk := vfs.NewCrashableMem()
	s, err := Open(context.Background(), Config{Path: "/db", fs: disk})
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
		requireKept(t, cut, before)
	}
	require.NoError(t, s.Close())
}

// sendAndRelease sends message n to some users and releases it for a third.
func sendAndRelease(t *testing.T, s *Store, n uint64, answer func(told, bool)) {
	users := make([]capping.UserID, 1+rand.IntN(100))
	for i := range users {
		users[i] = capping.UserID(n*1000) + capping.UserID(i)
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

func requireKept(t *testing.T, disk vfs.FS, answered map[told]bool) {
	s, err := Open(context.Background(), Config{Path: "/db", fs: disk})
	require.NoError(t, err)
	requireAnswers(t, s, answered)
	requireCounted(t, s)
	require.NoError(t, s.Close())
}

// TestSecondProcess opens a store that another process has open.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(context.Background(), Config{Path: dir})
	require.NoError(t, err)
	_, err = Open(context.Background(), Config{Path: dir})
	require.ErrorContains(t, err, "another capper process has the store open")

	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), crashDir+"="+dir)
	var stderr strings.Builder
	child.Stderr = &stderr
	require.Error(t, child.Run())
	require.Contains(t, stderr.String(), "another capper process has the store open")
	require.Contains(t, stderr.String(), dir)

	// The first is as well as before, and gives the directory back.
	require.NoError(t, s.Filter(context.Background(), benchBatch("m", []capping.UserID{1}), make([]capping.Verdict, 1)))
	require.NoError(t, s.Close())
	s, err = Open(context.Background(), Config{Path: dir})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
