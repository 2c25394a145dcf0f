package pebblestore

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// TestDamagedFilter damages the filter of a table. The table's logs must still be readable.
func TestDamagedFilter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := reopen(t, Config{Path: dir})
	users := manyUsers(20_000)
	_, err := filterAll(s, "m", users...)
	require.NoError(t, err)
	require.NoError(t, s.db.Flush())
	for i := range s.stripes { // only the table knows the logs now
		s.stripes[i].cache = newLogCache(1, false)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	require.NoError(t, err)
	require.Len(t, tables, 1)
	content, err := os.ReadFile(tables[0])
	require.NoError(t, err)
	content[len(content)-6_000] ^= 1
	require.NoError(t, os.WriteFile(tables[0], content, 0o600))

	verdicts, err := filterAll(s, "m", users...)
	require.NoError(t, err)
	requireAll(t, capping.Replayed, verdicts)
	require.Contains(t, s.Health(context.Background()).Error, "a Bloom filter of a database table is damaged")
	require.NoError(t, s.Close())
}
