package database

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLockErrorsSayWhatIsWrong checks that a lock file of another user is not reported as another process. A
// first start as root leaves such a file.
func TestLockErrorsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	for _, held := range []error{syscall.EAGAIN, syscall.EACCES, errors.New("lock held by current process")} {
		require.ErrorContains(t, explainLock(held), "another capper process has the store open")
	}
	denied := explainLock(&fs.PathError{Op: "open", Path: "log.db/LOCK", Err: syscall.EACCES})
	require.EqualError(t, denied, "open log.db/LOCK: permission denied")
	require.ErrorIs(t, denied, fs.ErrPermission)
}
