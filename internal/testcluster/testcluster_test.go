package testcluster_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func ping(addr string, within time.Duration) error {
	conn, err := net.DialTimeout("tcp", addr, testkit.Patience)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err = io.ReadFull(conn, make([]byte, len("+PONG\r\n")))
	return err
}

func TestServersCanBeBrokenAndMended(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	require.Len(t, c.Addrs, 2)
	addr := c.Addrs[0]
	require.NoError(t, ping(addr, testkit.Patience))

	require.NoError(t, c.Pause(addr))
	require.Error(t, ping(addr, 50*time.Millisecond))
	require.NoError(t, c.Resume(addr))
	require.NoError(t, ping(addr, testkit.Patience))

	require.NoError(t, c.Kill(addr))
	require.Error(t, ping(addr, time.Second))
	require.NoError(t, c.Restart(addr))
	require.NoError(t, ping(addr, testkit.Patience))
}

func TestClusterServesAtOnce(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Masters: 3, Replicas: 1})
	require.Len(t, c.Addrs, 6)
	for _, addr := range c.Addrs {
		require.NoError(t, ping(addr, testkit.Patience))
	}
}
