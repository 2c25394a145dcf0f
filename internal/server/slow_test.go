package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
)

// ask sends the text and reads the service's answer.
func ask(t *testing.T, c net.Conn, text string) (status int, code string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	return answered(t, c)
}

func answered(t *testing.T, c net.Conn) (status int, code string) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	var f failed
	require.NoError(t, json.Unmarshal(body, &f), "%s", body)
	return response.StatusCode, f.Error.Code
}

const postFilter = "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

func TestSlowAndBrokenBodiesAreToldSo(t *testing.T) {
	t.Parallel()
	addr := newService(t).start(nil)
	t.Run("stops", func(t *testing.T) {
		t.Parallel()
		status, code := ask(t, guest(t, "127.0.0.1", addr), postFilter+"Content-Length: 100\r\n\r\n{")
		require.Equal(t, http.StatusRequestTimeout, status)
		require.Equal(t, "request_timeout", code)
	})
	t.Run("trickles", func(t *testing.T) {
		t.Parallel()
		c := guest(t, "127.0.0.1", addr)
		_, err := io.WriteString(c, postFilter+"Content-Length: 100000\r\n\r\n{")
		require.NoError(t, err)
		stop := make(chan struct{})
		defer close(stop)
		go func() { // never silent for long, and far too slow
			drop := time.NewTicker(500 * time.Millisecond)
			defer drop.Stop()
			for {
				select {
				case <-stop:
					return
				case <-drop.C:
					_, _ = c.Write([]byte(" "))
				}
			}
		}()
		status, code := answered(t, c)
		require.Equal(t, http.StatusRequestTimeout, status)
		require.Equal(t, "request_timeout", code)
	})
	t.Run("breaks off", func(t *testing.T) {
		t.Parallel()
		c := guest(t, "127.0.0.1", addr)
		_, err := io.WriteString(c, postFilter+"Content-Length: 100\r\n\r\n{")
		require.NoError(t, err)
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
		status, code := answered(t, c)
		require.Equal(t, http.StatusRequestTimeout, status)
		require.Equal(t, "request_timeout", code)
	})
}

// TestUnreadAnswersHoldNoUsers checks that an unread answer holds no users, and that a client below the minimum rate
// is cut off.
func TestUnreadAnswersHoldNoUsers(t *testing.T) {
	t.Parallel()
	const unread = 60_000 // the denials exceed the four megabytes that a connection buffers
	s := newService(t, func(cfg *server.Config) {
		cfg.Bounds = gate.Bounds{InFlightUsers: unread, MinRate: 1 << 30}
	})
	addr := s.start(nil)
	many := idList(1_000_000_000, unread)
	body := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(many), many)
	ask := func(c net.Conn) {
		_, err := io.WriteString(c, postFilter+body)
		require.NoError(t, err)
	}
	first := guest(t, "127.0.0.2", addr)
	ask(first) // these sends are recorded, so that all later ones are denied
	_, err := io.Copy(io.Discard, io.LimitReader(first, 1))
	require.NoError(t, err)
	many = bytes.Replace(many, []byte("greed"), []byte("grief"), 1)
	body = fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(many), many)
	for range 3 {
		c := guest(t, "127.0.0.2", addr)
		require.NoError(t, c.(*net.TCPConn).SetReadBuffer(4<<10))
		ask(c)
		require.Eventually(t, func() bool { return s.metric("capper_in_flight_answer_bytes") != "0" }, 2*time.Minute,
			time.Millisecond)
		require.Eventually(t, func() bool { return s.metric("capper_in_flight_users") == "0" }, 2*time.Minute,
			time.Millisecond)
	}
	require.NotEqual(t, "0", s.metric("capper_in_flight_answer_bytes"))
	testkit.Eventually(t, func() bool { return s.metric("capper_in_flight_answer_bytes") == "0" }, "nobody reads them")
}

func idList(from, n int) []byte {
	body := []byte(`{"message_id":"greed","user_ids":[`)
	for i := range n {
		body = strconv.AppendInt(append(body, ','), int64(from+i), 10)
	}
	return append(bytes.Replace(body, []byte("[,"), []byte("["), 1), "]}"...)
}
