package pebblestore

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// crashDir is the environment variable that makes the test binary the process to kill.
const crashDir = "CAPPER_TEST_CRASH_DIR"

// crashChild records sends without end from several goroutines. crashChild writes each answered allowed send
// to stdout: message (8), user (8).
func crashChild(dir string, stdout io.Writer) error {
	s, err := Open(context.Background(), Config{Path: dir, IDs: childIDs()})
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

// recordSome sends message n to 1 to 2,000 users and returns the allowed ones.
func recordSome(s *Store, n uint64) (all []byte, err error) {
	users := make([]capping.UserID, 1+rand.IntN(1<<rand.IntN(12)))
	for i := range users {
		users[i] = person(s, capping.UserID(rand.Uint32N(100_000)))
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
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, t.message), uint64(t.user))
}

func crashMessage(n uint64) string { return fmt.Sprintf("crash-%d", n) }

type told struct {
	message uint64
	user    capping.UserID
}

// readTold reads a child's output and kills the child after killAfter sends. readTold then reads the rest of
// the pipe, which the child wrote before its end.
func readTold(t *testing.T, stdout io.Reader, killAfter int, kill func() error) (all []told) {
	r := bufio.NewReader(stdout)
	var record [16]byte
	for {
		if _, err := io.ReadFull(r, record[:]); err != nil {
			require.GreaterOrEqual(t, len(all), killAfter, "the child ended by itself")
			return all
		}
		user := capping.UserID(binary.LittleEndian.Uint64(record[8:]))
		all = append(all, told{binary.LittleEndian.Uint64(record[:]), user})
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

	// The first store still works and releases the directory.
	require.NoError(t, s.Filter(context.Background(), benchBatch("m", []capping.UserID{1}), make([]capping.Verdict, 1)))
	require.NoError(t, s.Close())
	s, err = Open(context.Background(), Config{Path: dir})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
