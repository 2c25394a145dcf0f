package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/server"
	"capper/internal/testcluster"
)

// crowdVariable makes the test binary open connections to the address in it: a
// process of its own, as one process may not hold both ends of so many.
const crowdVariable = "CAPPER_TEST_CROWD"

func TestMain(m *testing.M) {
	raiseFileLimit()
	if addr := os.Getenv(crowdVariable); addr != "" {
		if err := crowd(addr); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	if text := os.Getenv(loadVariable); text != "" {
		if err := runLoad(text); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(victimVariable); dir != "" {
		if err := runVictim(dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(testcluster.Run(m))
}

// raiseFileLimit asks for as many open files as the crowd needs; where that is
// refused the test fails and says so.
func raiseFileLimit() {
	want := syscall.Rlimit{Cur: 12_000, Max: 12_000}
	var have syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have) == nil && have.Cur < want.Cur {
		want.Max = max(want.Max, have.Max)
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &want)
	}
}

// The crowd: connections that keep still after an answer, that never end their
// header, and that never end their body.
const (
	crowdIdle    = 4000
	crowdHeaders = 3000
	crowdBodies  = 3000
)

// crowd opens the connections, says "ready", then "closed" when the server has
// closed all that owe it a header, and ends with its input.
func crowd(addr string) error {
	const headers = "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
		"application/json\r\nContent-Length: 1000\r\n"
	idle, err := connections(crowdIdle, addr, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if err != nil {
		return err
	}
	for _, c := range idle {
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		if err := response.Body.Close(); err != nil {
			return err
		}
	}
	slowBodies, err := connections(crowdBodies, addr, headers+"\r\n"+`{"message_id":"m","user_ids":[1,2`)
	if err != nil {
		return err
	}
	slowHeaders, err := connections(crowdHeaders, addr, headers+"X-More: ")
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for _, c := range slowHeaders {
		_, _ = io.Copy(io.Discard, c) // ended or reset: closed
	}
	fmt.Println("closed")
	_, err = io.Copy(io.Discard, os.Stdin)
	for _, c := range slices.Concat(idle, slowBodies, slowHeaders) {
		_ = c.Close()
	}
	return err
}

func connections(n int, addr, text string) ([]net.Conn, error) {
	var conns []net.Conn
	for range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(c, text); err != nil {
			return nil, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

// Ten thousand idle and slow connections do not keep others from being served.
func TestTenThousandIdleAndSlowConnections(t *testing.T) {
	s := newService(t, func(cfg *server.Config) { cfg.Bounds.InFlightBytes = 64 << 20 })
	addr := s.start(nil)
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), crowdVariable+"="+addr)
	input, err := command.StdinPipe()
	require.NoError(t, err)
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	said := bufio.NewScanner(output)
	next := func() string {
		said.Scan()
		return said.Text()
	}
	require.Equal(t, "ready", next())

	t.Logf("slowest of the calls: %s", callWhileCrowded(t, addr))
	open, err := strconv.Atoi(s.metric("capper_open_connections"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, open, crowdIdle, "those that keep still were there all the time")
	require.Equal(t, "closed", next(), "who does not send a header in time is cut off")
	require.NoError(t, input.Close())
	require.NoError(t, command.Wait())
}

// callWhileCrowded makes calls from a few clients and returns the slowest.
func callWhileCrowded(t *testing.T, addr string) (slowest time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			for call := range 25 {
				start := time.Now()
				body := strings.NewReader(fmt.Sprintf(`{"message_id":"m","user_ids":[%d]}`, 1000+client*100+call))
				response, err := http.Post("http://"+addr+"/v1/filter", "application/json", body)
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
				mu.Lock()
				slowest = max(slowest, time.Since(start))
				if err != nil || response.StatusCode != http.StatusOK {
					t.Errorf("call %d: %v", call, err)
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return slowest
}
