package journal

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// A record that was given before an instant and is not on the tape yet is not said to be on the disk.
func TestFlushedAtWaitsForRecordsThatAreUnderWay(t *testing.T) {
	t.Parallel()
	j, err := Open(t.Context(), Config{To: filepath.Join(t.TempDir(), "audit")})
	require.NoError(t, err)
	release, flushed := make(chan struct{}), make(chan error, 1)
	given := time.Now()
	j.beside.begin(func() { <-release })
	go func() { flushed <- j.Flush(t.Context()) }()
	<-time.After(2*flushEvery + flushEvery/2)
	require.False(t, j.Status().FlushedAt.After(given))
	require.Empty(t, flushed)
	close(release)
	require.NoError(t, <-flushed)
	testkit.Eventually(t, func() bool { return j.Status().FlushedAt.After(given) })
	require.NoError(t, j.Close(t.Context()))
}
