package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"testing"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// crowdVariable makes the test binary open connections to the address in the variable. A separate process is needed,
// because one process may not hold both ends of so many connections.
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
	status := testcluster.Run(m)
	testkit.RemovePrograms()
	os.Exit(status)
}

// raiseFileLimit raises the limit of open files for the crowd, or fails the test.
func raiseFileLimit() {
	want := syscall.Rlimit{Cur: 12_000, Max: 12_000}
	var have syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &have) == nil && have.Cur < want.Cur {
		want.Max = max(want.Max, have.Max)
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &want)
	}
}

// The crowd consists of connections that stay idle after an answer, never end their header, or never end their body.
const (
	crowdIdle    = 4000
	crowdHeaders = 3000
	crowdBodies  = 3000
)

// crowd opens the connections and prints "ready". It prints "closed" when the server has closed all connections with
// an incomplete header, and ends at the end of its input.
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
