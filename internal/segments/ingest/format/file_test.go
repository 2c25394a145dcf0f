package format

import (
	"bytes"
	"os"
	"syscall"
	"testing"

	"capper/internal/objects"

	"github.com/stretchr/testify/require"
)

// TestAFullDiskIsNoFaultOfAFile checks that a full disk is not reported as a fault of the copied file.
func TestAFullDiskIsNoFaultOfAFile(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	_, err = bytes.NewReader(make([]byte, 3<<20)).WriteTo(&spooling{full})
	require.ErrorIs(t, err, syscall.ENOSPC)
	var storage *objects.StorageError
	require.ErrorAs(t, err, &storage)
}
