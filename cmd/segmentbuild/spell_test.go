package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/ids"
)

// Generated users have valid ids of each kind, which differ between users and stay the same.
func TestGeneratedIDs(t *testing.T) {
	t.Parallel()
	for _, kind := range ids.Kinds() {
		scheme, seen := ids.New(kind, ids.Key{1}), map[string]bool{}
		for _, user := range []uint32{0, 1, 2, 255, 65_536, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
			id := spellings[kind.String()](nil, user)
			canonical, err := scheme.Canonical(nil, id)
			require.NoError(t, err)
			require.Equal(t, string(canonical), string(id))
			seen[string(id)] = true
		}
		require.Len(t, seen, 8, "%s", kind)
	}
	status, _, said := command(t, "", "generate", "--users", "10", "--segments", "a=50%", "--ids", "uuid", "--as",
		"parquet",
		"--out", t.TempDir())
	require.Equal(t, 2, status)
	require.Contains(t, said, "--as: the file format must be text or csv for user ids of the kind uuid, got parquet")
}
