package ingest

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"capper/internal/objects"

	"github.com/stretchr/testify/require"
)

// A disk that is full is no fault of the file that is copied onto it.
func TestAFullDiskIsNoFaultOfAnInput(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	_, err = bytes.NewReader(make([]byte, 3<<20)).WriteTo(&spooling{full})
	require.ErrorIs(t, err, syscall.ENOSPC)
	var storage *objects.StorageError
	require.ErrorAs(t, err, &storage)
	var input *InputError
	require.NotErrorAs(t, inputFault(err), &input)

	_, err = read(t, Input{Path: write(t, "a.parquet.gz", gzipped(t, []byte("hello, world"))[:20])})
	require.ErrorAs(t, err, &input, "what is copied is cut off")
	_, err = read(t, Input{Path: filepath.Join(t.TempDir(), "none.parquet")})
	require.ErrorAs(t, err, &input)
}
