//go:build storms

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/testcluster"
)

// TestPermitsPerSecond measures a service on each store with eight clients that ask
// for a hundred permits a call, and prints a table. CAPPER_BENCH_FACTOR scales how
// many calls: 1 is what the documents show, the default only sees to it that the
// benchmark works.
func TestPermitsPerSecond(t *testing.T) {
	factor := 0.005
	if text := os.Getenv("CAPPER_BENCH_FACTOR"); text != "" {
		var err error
		factor, err = strconv.ParseFloat(text, 64)
		require.NoError(t, err)
	}
	redis := testcluster.Single(t, testcluster.Options{Settings: []string{"appendonly yes",
		"appendfsync everysec"}}).Addrs[0]
	lines := []string{
		fmt.Sprintf("| %-8s | %-11s | %10s | %8s | %8s |", "store", "request ids", "permits/s", "p50, ms", "p99, ms"),
		"|---|---|---|---|---|",
	}
	for _, store := range []string{"embedded", "redis"} {
		dir := t.TempDir()
		publish(t, filepath.Join(dir, "segments"), "new=1-10")
		config := embedded(dir, "{default: {daily: 1}}")
		if store == "redis" {
			config = strings.Replace(config, fmt.Sprintf("embedded: {path: %s/log.db}", dir),
				fmt.Sprintf("kind: redis, redis: {addrs: [%s], replica_acks: 0}", redis), 1)
		}
		file := filepath.Join(dir, "capper.yaml")
		write(t, file, config+"pacers: {provider: {limits: [{max: 10000000, window: 10s}]}}\n")
		p := serve(t, file)
		for _, ids := range []bool{false, true} {
			load := permitLoad{addr: strings.TrimPrefix(p.url, "http://"), clients: 8, calls: max(10, int(5000*factor)),
				permits: 100, ids: ids}
			rate, took := load.run(t)
			lines = append(lines, fmt.Sprintf("| %-8s | %-11v | %10.0f | %8.2f | %8.2f |", store, ids, rate,
				took[len(took)/2].Seconds()*1000, took[len(took)*99/100].Seconds()*1000))
		}
	}
	t.Logf("factor %g\n%s", factor, strings.Join(lines, "\n"))
}

// permitLoad is calls for permits by clients at once, each on a connection of its own.
type permitLoad struct {
	addr    string
	clients int
	calls   int // of a client
	permits int // of a call
	ids     bool
}

// run is how many permits were granted a second, and how long calls took, sorted.
func (l *permitLoad) run(t *testing.T) (rate float64, took []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	granted := 0
	began := time.Now()
	for client := range l.clients {
		all.Go(func() {
			permits, times, err := l.converse(client)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("client %d: %v", client, err)
			}
			granted, took = granted+permits, append(took, times...)
		})
	}
	all.Wait()
	rate = float64(granted) / time.Since(began).Seconds()
	require.False(t, t.Failed())
	require.Equal(t, l.clients*l.calls*l.permits, granted)
	slices.Sort(took)
	return rate, took
}

// converse makes a client's calls, one after the other.
func (l *permitLoad) converse(client int) (granted int, took []time.Duration, err error) {
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		return 0, nil, err
	}
	defer c.Close()
	reader := bufio.NewReader(c)
	began := time.Now().UnixNano()
	for call := range l.calls {
		request := fmt.Sprintf(`{"pacers": ["provider"], "permits": %d}`, l.permits)
		if l.ids {
			request = fmt.Sprintf(`{"pacers": ["provider"], "permits": %d, "request_id": "c%d-%d-%d"}`, l.permits,
				client, began, call)
		}
		start := time.Now()
		answer, err := ask(c, reader, request)
		if err != nil {
			return granted, took, err
		}
		took, granted = append(took, time.Since(start)), granted+answer.Granted
	}
	return granted, took, nil
}

func ask(c net.Conn, reader *bufio.Reader, request string) (answer api.Permits, err error) {
	if _, err := fmt.Fprintf(c, "POST /v1/permits HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
		"application/json\r\nContent-Length: %d\r\n\r\n%s",
		len(request), request); err != nil {
		return answer, err
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer, err
	}
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return answer, json.Unmarshal(text, &answer)
}
