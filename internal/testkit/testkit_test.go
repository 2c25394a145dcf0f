package testkit

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
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
