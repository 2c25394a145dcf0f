//go:build storms

package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// The victim is the program with these bounds. The documented memory is twice the budgets, because the garbage
// collector allows the same amount of garbage, plus 150 MiB for the process and its small cache.
const (
	victimBodies  = 128 << 20
	victimAnswers = 128 << 20
	victimUsers   = 4_000_000
	victimBase    = 150 << 20
	victimMemory  = 2*(victimBodies+victimAnswers+victimUsers*64) + victimBase
)

// victim is the service in a separate process.
type victim struct {
	t    *testing.T
	addr string
	pid  int
}

func startVictim(t *testing.T) *victim {
	t.Helper()
	dir := t.TempDir()
	ids, config := filepath.Join(dir, "ids.txt"), filepath.Join(dir, "capper.yaml")
	require.NoError(t, os.WriteFile(ids, []byte("1\n"), 0o600))
	out, err := exec.Command(testkit.Program(t, "segmentbuild"), "build", "--to", dir+"/segments", "--segment",
		"new="+ids).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `server:
  listen: "127.0.0.1:0"
  call_timeout: 1m
  max_in_flight_users: %d
  bounds: {body_bytes: %d, answer_bytes: %d}
segments: {source: %[4]s/segments, cache_dir: %[4]s/cache}
store: {embedded: {path: %[4]s/log.db, cache_size: 16MiB}}
limits: {default: [{name: never, max: 0, window: 24h}]} # answers that deny everybody are large
`, victimUsers, victimBodies, victimAnswers, dir), 0o600))
	command := exec.Command(testkit.Program(t, "capper"), "serve", "--config", config)
	log := new(testkit.Log)
	command.Stderr = log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	v := &victim{t: t, pid: command.Process.Pid}
	testkit.Eventually(t, func() bool { return v.ready(log.String()) }, "%s", log)
	return v
}

var victimAddress = regexp.MustCompile(`what=api address=(\S+)\s`)

func (v *victim) ready(log string) bool {
	found := victimAddress.FindStringSubmatch(log)
	if found == nil {
		return false
	}
	v.addr = found[1]
	response, err := http.Get("http://" + v.addr + "/readyz")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

var peakMemory = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak returns the peak memory of the process in bytes.
func (v *victim) peak() int {
	v.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.pid))
	require.NoError(v.t, err)
	kilobytes, err := strconv.Atoi(peakMemory.FindStringSubmatch(string(status))[1])
	require.NoError(v.t, err)
	return kilobytes << 10
}

// dial connects from an address of this machine; each address counts as another client.
func (v *victim) dial(from string) (net.Conn, error) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return dialer.Dial("tcp", v.addr)
}

// attack keeps n connections from the address busy with one request each until the test ends, and reopens closed
// connections. It returns when each connection has sent its first request.
func (v *victim) attack(from string, n int, header string, body []byte) {
	var first sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	var attackers sync.WaitGroup
	v.t.Cleanup(func() { cancel(); attackers.Wait() })
	for range n {
		first.Add(1)
		attackers.Go(func() {
			once := sync.OnceFunc(first.Done)
			defer once()
			for ctx.Err() == nil {
				v.strike(ctx, from, header, body, once)
			}
		})
	}
	first.Wait()
}

// strike sends one request, reads nothing, and waits until the service closes the connection.
func (v *victim) strike(ctx context.Context, from, header string, body []byte, sent func()) {
	c, err := v.dial(from)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, err = (&net.Buffers{[]byte("POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
		header + "\r\n"), body}).WriteTo(c)
	sent()
	// A write detects a closed connection and reads nothing from it.
	for err == nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
			_, err = c.Write([]byte("\r\n"))
		}
	}
}

// squeezed returns 16 MiB compressed by gzip to 16 KiB.
func squeezed(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(append([]byte(`{"message_id":"m","user_ids":[1]`), bytes.Repeat([]byte(" "), 16<<20-100)...))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// TestNobodyStarvesBesideTheGreedy runs greedy callers: one never reads its answers, one never ends its gzip, one
// stops within large bodies, one sends gzip bombs, and one sends a hundred calls at a time. Other callers must be
// served, and memory must stay within the documented bound.
func TestNobodyStarvesBesideTheGreedy(t *testing.T) {
	v := startVictim(t)
	many := idList(1_000_000_000, 100_000)
	bomb := squeezed(t)
	large := append(idList(1, 10), bytes.Repeat([]byte(" "), 15<<20)...)
	announced := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	// unread answers of 11 MB
	v.attack("127.0.0.2", 40, announced(len(many)), many)
	v.attack("127.0.0.3", 80, "Content-Encoding: gzip\r\n"+announced(len(bomb)), bomb[:len(bomb)-8]) // incomplete
	v.attack("127.0.0.4", 40, announced(16<<20), large)                                              // 1 MiB missing
	v.attack("127.0.0.5", 20, "Content-Encoding: gzip\r\n"+announced(len(bomb)), bomb)
	v.attack("127.0.0.6", 100, announced(len(many)), many)

	audience := idList(5000, 100_000)
	bitmap := fmt.Appendf(nil, `{"message_id":"fair","users_bitmap":%q}`, bitmapText(t, everyThirtieth(1_000_000)...))
	for call := range 2 { // all greedy callers are active by then
		for _, body := range [][]byte{[]byte(fmt.Sprintf(`{"message_id":"m","user_ids":[%d]}`, call)), audience,
			bitmap} {
			status, text := v.call(body)
			require.Equal(t, http.StatusOK, status, "call %d: %s", call, text)
		}
	}
	peak := v.peak()
	t.Logf("peak: %d MiB of %d", peak>>20, victimMemory>>20)
	require.Less(t, peak, victimMemory)
}

func everyThirtieth(n int) []uint32 {
	users := make([]uint32, n)
	for i := range users {
		users[i] = uint32(i) * 30
	}
	return users
}

// call makes a call from the usual address. The result text is the beginning of the answer.
func (v *victim) call(body []byte) (status int, text string) {
	v.t.Helper()
	client := http.Client{Timeout: 3 * time.Minute}
	response, err := client.Post("http://"+v.addr+"/v1/filter", "application/json", bytes.NewReader(body))
	require.NoError(v.t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(v.t, err)
	if response.StatusCode == http.StatusOK {
		require.True(v.t, json.Valid(answer))
	}
	return response.StatusCode, string(answer[:min(len(answer), 200)])
}
