package app

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotify(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	defer manager.Close()
	require.NoError(t, notify(socket, ready, "STATUS=well"))
	got := make([]byte, 100)
	n, err := manager.Read(got)
	require.NoError(t, err)
	require.Equal(t, "READY=1\nSTATUS=well", string(got[:n]))

	require.NoError(t, notify("", ready), "nobody asks")
	require.ErrorContains(t, notify(filepath.Join(t.TempDir(), "none"), ready), "notify systemd")
}
