package ops_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore"
	"capper/internal/cli/ops"
	"capper/internal/live"
)

// embedded opens an empty embedded store.
func embedded(t *testing.T) *pebblestore.Store {
	t.Helper()
	store, err := pebblestore.Open(t.Context(), pebblestore.Config{Path: filepath.Join(t.TempDir(), "log.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

// TestCopyChanges checks that passes copy the changes to sets with their instants and clients, and the instants up to
// which changes were removed.
func TestCopyChanges(t *testing.T) {
	t.Parallel()
	from, to := embedded(t), embedded(t)
	change := func(b *live.Batch) {
		t.Helper()
		_, err := from.Change(t.Context(), b)
		require.NoError(t, err)
	}
	copied := func(want int) {
		t.Helper()
		n, err := ops.CopyChanges(t.Context(), from, to)
		require.NoError(t, err)
		require.Equal(t, want, n)
		for _, set := range []string{"opted-out", "stop"} {
			require.Equal(t, from.Lists().Since(set, 0, 0, 100), to.Lists().Since(set, 0, 0, 100))
		}
	}
	copied(0)
	require.Empty(t, to.Lists().Sizes())
	change(&live.Batch{Set: "opted-out", By: "crm", At: 5, Add: []capping.UserID{1, 2}, Remove: []capping.UserID{3}})
	change(&live.Batch{Set: "opted-out", By: "mail", At: 7, Add: []capping.UserID{3}, Forget: []capping.UserID{2}})
	change(&live.Batch{Set: "stop", Add: []capping.UserID{9}})
	copied(4)
	copied(4)
	change(&live.Batch{Set: "stop", Remove: []capping.UserID{9}})
	require.NoError(t, from.Free(t.Context(), map[string]capping.Instant{"opted-out": 6}))
	copied(3)
	require.Equal(t, map[string]capping.Instant{"opted-out": 6}, to.Lists().AllFreed())
}
