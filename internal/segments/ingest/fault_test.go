package ingest

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/objects"
)

// TestFaultsOfInputs checks that a fault of the connection is not reported as a fault of the input.
func TestFaultsOfInputs(t *testing.T) {
	t.Parallel()
	var input *InputError
	require.NotErrorAs(t, inputFault(&objects.StorageError{Err: errors.New("x")}), &input)
	_, err := read(t, Input{Path: write(t, "a.parquet.gz", gzipped(t, []byte("hello, world"))[:20])})
	require.ErrorAs(t, err, &input, "what is copied is cut off")
	_, err = read(t, Input{Path: filepath.Join(t.TempDir(), "none.parquet")})
	require.ErrorAs(t, err, &input)
}
