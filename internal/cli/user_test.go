package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/cli"
)

func TestUserID(t *testing.T) {
	t.Parallel()
	var u cli.UserID
	require.NoError(t, u.UnmarshalText([]byte("4294967295")))
	require.Equal(t, cli.UserID(4_294_967_295), u)
	for _, text := range []string{"", "x", "-1", "4294967296", "1.5"} {
		require.ErrorContains(t, u.UnmarshalText([]byte(text)), "must be a user id from 0 to 4294967295, got", text)
	}
}
