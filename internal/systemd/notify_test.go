package systemd

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
	require.NoError(t, Notify(socket, Ready, "STATUS=well"))
	got := make([]byte, 100)
	n, err := manager.Read(got)
	require.NoError(t, err)
	require.Equal(t, "READY=1\nSTATUS=well", string(got[:n]))

	require.NoError(t, Notify("", Ready), "nobody asks")
	require.ErrorContains(t, Notify(filepath.Join(t.TempDir(), "none"), Ready), "notify systemd")
}
