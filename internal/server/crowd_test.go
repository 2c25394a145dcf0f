package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/server"
	"capper/internal/testkit"
)

// guest connects from an address of this machine.
func guest(t *testing.T, from, to string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := dialer.Dial("tcp", to)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// asks makes a whole request, after which the connection is idle.
func asks(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
}

func requireClosed(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := io.Copy(io.Discard, c)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "it is still open")
}

// metric returns the value of a metric without labels.
func (s *service) metric(name string) string {
	s.t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (.*)$`).FindSubmatch(s.get("/metrics").body)
	require.NotNil(s.t, found, name)
	return string(found[1])
}

func TestConnectionsAreBoundedAndShared(t *testing.T) {
	t.Parallel()
	s := newService(t, func(cfg *server.Config) { cfg.Bounds.Connections = 6 })
	addr := s.start(nil)
	const greedy, modest = "127.0.0.2", "127.0.0.3"
	idle := guest(t, greedy, addr)
	asks(t, idle)
	var stuck []net.Conn
	for range 5 {
		c := guest(t, greedy, addr)
		_, err := io.WriteString(c, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
			"application/json\r\nContent-Length: 9\r\n\r\n{")
		require.NoError(t, err)
		stuck = append(stuck, c)
	}
	testkit.Eventually(t, func() bool { return s.metric("capper_open_connections") == "6" })

	asks(t, guest(t, greedy, addr)) // an address may keep its own connections
	requireClosed(t, idle)
	for range 3 {
		asks(t, guest(t, modest, addr)) // another address is accepted
	}
	requireClosed(t, stuck[0])
	requireClosed(t, stuck[1])
	require.Equal(t, "4", s.metric("capper_connections_closed_total"))

	requireClosed(t, guest(t, greedy, addr)) // the address with the most connections, all in use, gets no more
}
