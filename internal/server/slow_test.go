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

// TestRefusalsReachClientsThatSendFirst checks that a client that reads nothing until it has sent its whole body gets
// the response to a refused call, and not a broken connection.
func TestRefusalsReachClientsThatSendFirst(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	addr := newService(t, func(c *server.Config) { c.Bounds.BodyBytes = limit }).start(nil)
	chunked := func(size int) string { return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n", size) }
	length := func(size int) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n", size) }
	for name, c := range map[string]struct {
		head   string
		bytes  int
		end    string
		status int
	}{
		"too large": {postFilter + length(3*limit), 3 * limit, "", http.StatusRequestEntityTooLarge},
		"too large, chunked": {postFilter + chunked(3*limit), 3 * limit, "\r\n0\r\n\r\n",
			http.StatusRequestEntityTooLarge},
		"no such path": {"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\n" + length(limit), limit, "",
			http.StatusNotFound},
		"other media type": {"POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n" +
			length(limit), limit, "", http.StatusUnsupportedMediaType},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conn net.Conn
			for attempt := 1; ; attempt++ { // a busy client may send for longer than the server discards
				conn = guest(t, "127.0.0.1", addr)
				began := time.Now()
				err := sendSlowly(conn, c.head, c.bytes)
				if time.Since(began) < 4*time.Second || attempt == 20 {
					require.NoError(t, err)
					break
				}
			}
			status, _ := ask(t, conn, c.end)
			require.Equal(t, c.status, status)
		})
	}
}

// sendSlowly sends a body for much longer than net/http waits before it closes a connection, and for a quarter of the
// time for which the server discards bodies.
func sendSlowly(conn net.Conn, head string, size int) error {
	_, err := io.WriteString(conn, head)
	piece := bytes.Repeat([]byte(" "), size/64)
	for range 64 {
		if err != nil {
			return err
		}
		_, err = conn.Write(piece)
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// TestARefusalDoesNotWaitForTheBody checks that the response to a refused call comes before the body.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	t.Parallel()
	conn := guest(t, "127.0.0.1", newService(t).start(nil))
	status, code := ask(t, conn, postFilter+"Content-Length: 20000000\r\n\r\n{")
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Equal(t, "too_large", code)
}

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
