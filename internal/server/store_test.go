package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
)

// openStore is an embedded store in a directory of the test.
func openStore(t testing.TB, clock func() time.Time) capping.Store {
	t.Helper()
	store, err := pebblestore.Open(pebblestore.Config{Path: t.TempDir(), Clock: clock, CacheBytes: 16 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}
