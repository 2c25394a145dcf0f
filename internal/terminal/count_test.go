package terminal

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount(t *testing.T) {
	t.Parallel()
	require.Equal(t, "0 users are", Count(0, "user is", "users are"))
	require.Equal(t, "1 user is", Count(int64(1), "user is", "users are"))
	require.Equal(t, "2 users are", Count(uint64(2), "user is", "users are"))
}
