package audit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/capping"
)

func TestNoByteOfADocumentCanChangeUnseen(t *testing.T) {
	t.Parallel()
	want := audit.Erasure{Users: []capping.UserID{1, 42}, At: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	sealed, err := audit.Seal(want)
	require.NoError(t, err)
	var got audit.Erasure
	require.NoError(t, audit.Unseal(sealed, &got))
	require.Equal(t, want, got)
	policy := audit.SealPolicy([]byte("limits:\n  default: {daily: 3}\n"))
	yaml, err := audit.OpenPolicy(policy)
	require.NoError(t, err)
	require.Equal(t, "limits:\n  default: {daily: 3}\n", string(yaml))
	for at := range sealed {
		flipped := slices.Clone(sealed)
		flipped[at] ^= 1
		require.ErrorIs(t, audit.Unseal(flipped, &got), audit.ErrDocument)
		require.ErrorIs(t, audit.Unseal(sealed[:at], &got), audit.ErrDocument)
	}
	for at := range policy {
		flipped := slices.Clone(policy)
		flipped[at] ^= 1
		_, err = audit.OpenPolicy(flipped)
		require.ErrorIs(t, err, audit.ErrDocument)
	}
}
