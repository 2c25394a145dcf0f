package journal

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A record that was given before an instant and is not on the tape yet is not said to be on the disk.
func TestFlushedAtWaitsForRecordsThatAreUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, flushedAtWaits)
}

func flushedAtWaits(t *testing.T) {
	j, err := Open(t.Context(), Config{To: filepath.Join(t.TempDir(), "audit")})
	require.NoError(t, err)
	release, flushed := make(chan struct{}), make(chan error, 1)
	given := time.Now()
	j.beside.begin(func() { <-release })
	time.Sleep(2*flushEvery + flushEvery/2)
	require.False(t, j.Status().FlushedAt.After(given))
	j.cancel() // the loop of flushes and Flush wait by a mutex for each other, which stops the bubble's time
	j.done.Wait()
	go func() { flushed <- j.Flush(t.Context()) }()
	synctest.Wait()
	require.Empty(t, flushed)
	close(release)
	require.NoError(t, <-flushed)
	require.True(t, j.Status().FlushedAt.After(given))
	require.NoError(t, j.Close(t.Context()))
}
