package gate

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// TestACallerWhoHasLeftIsSeenBehindUnreadBytes checks HasLeft for a connection whose last bytes nobody has read, such
// as the closing message of TLS.
func TestACallerWhoHasLeftIsSeenBehindUnreadBytes(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	conn, err := l.Accept()
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithCancel(t.Context())
	of := withConnection(ctx, tls.Server(conn, nil))
	require.False(t, HasLeft(of))
	_, err = client.Write([]byte("bytes"))
	require.NoError(t, err)
	require.False(t, HasLeft(of))
	require.NoError(t, client.Close())
	testkit.Eventually(t, func() bool { return HasLeft(of) })
	require.False(t, HasLeft(ctx), "a request without a connection")
	cancel()
	require.True(t, HasLeft(ctx))
}
