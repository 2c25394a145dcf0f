package testkit

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockMovesByItsHand(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 9, 12, 44, 120_999_999, time.UTC)
	c := NewClockAt(start)
	require.Equal(t, start, c.Now())
	c.Advance(time.Hour)
	require.Equal(t, start.Add(time.Hour), c.Now())
	c.Set(start)
	require.Equal(t, start, c.Now())
	require.WithinDuration(t, time.Now(), NewClock().Now(), time.Minute)
}

func TestLogIsReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	var l Log
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 100 {
				fmt.Fprintln(&l, "line")
				_ = l.String()
			}
		})
	}
	writers.Wait()
	require.Len(t, l.String(), 4*100*5)
	l.Logger().Debug("said", "n", 7)
	require.Contains(t, l.String(), "level=DEBUG msg=said n=7")
}

// recorder is a test that only notes whether it fails.
type recorder struct {
	testing.TB
	failed bool
}

func (*recorder) Helper()                 {}
func (*recorder) Logf(string, ...any)     {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow()              { r.failed = true }

// TestABusyMachineProvesNothing checks that slow code fails a test only if the machine was steady in enough tries.
func TestABusyMachineProvesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		doneAt int // number of the try that succeeds; 0: none
		busy   int // number of tries in which the machine stands still
		want   int // tries
		failed bool
	}{{1, 0, 1, false}, {4, 0, 4, false}, {0, 0, 4, true}, {0, 2, 4, true}, {0, 3, 4, false}} {
		r, n := &recorder{TB: t}, 0
		judge(r, 4, func() (bool, time.Duration) {
			pause := standstill - 1
			if n++; n <= c.busy {
				pause++
			}
			return n == c.doneAt, pause
		}, "slow")
		require.Equal(t, []any{c.want, c.failed}, []any{n, r.failed}, "%+v", c)
	}
}

// TestAPulseNoticesStandstill delays the beat of a pulse.
func TestAPulseNoticesStandstill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for delay, want := range map[time.Duration]time.Duration{0: 0, 60 * time.Millisecond: 60 * time.Millisecond} {
			p := &pulse{stop: make(chan struct{})}
			p.beat(5*time.Millisecond, func() error {
				time.Sleep(delay)
				return nil
			})
			time.Sleep(500 * time.Millisecond)
			require.InDelta(t, want, p.end(), float64(5*time.Millisecond))
		}
	})
}

func TestNamespacesDiffer(t *testing.T) {
	t.Parallel()
	require.NotEqual(t, Namespace(), Namespace())
	require.Regexp(t, `^fc:`, Namespace())
}

func TestOpenWhenReadWaitsForTheReader(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	got := make(chan int)
	go func() {
		fd, _ := syscall.Open(pipe, syscall.O_RDONLY, 0)
		n, _ := syscall.Read(fd, make([]byte, 8))
		_ = syscall.Close(fd)
		got <- n
	}()
	_, err := OpenWhenRead(t, pipe).WriteString("four")
	require.NoError(t, err)
	require.Equal(t, 4, Receive(t, got))
}

func TestRootHasTheScripts(t *testing.T) {
	t.Parallel()
	require.FileExists(t, filepath.Join(Root(), "go.mod"))
	require.FileExists(t, filepath.Join(Root(), "scripts", "cluster.sh"))
}
