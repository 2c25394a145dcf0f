//go:build storms

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
)

// TestPermitsPerSecond measures a service on each store with eight clients that ask
// for a hundred permits a call, and prints a table. CAPPER_BENCH_FACTOR scales how
// many calls: 1 is what the documents show, the default only sees to it that the
// benchmark works.
func TestPermitsPerSecond(t *testing.T) {
	factor := benchFactor(t)
	node := testcluster.Single(t, testcluster.Options{Settings: []string{"appendonly yes",
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
				fmt.Sprintf("kind: redis, redis: {addrs: [%s], replica_acks: 0}", node), 1)
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

func benchFactor(t *testing.T) float64 {
	t.Helper()
	text := os.Getenv("CAPPER_BENCH_FACTOR")
	if text == "" {
		return 0.005
	}
	factor, err := strconv.ParseFloat(text, 64)
	require.NoError(t, err)
	return factor
}

// TestAMillionKeys takes a permit of each key of a pacer per key, and prints what a key costs. Every key then stands
// at its limit, and one key more than the bound of the client is refused. CAPPER_BENCH_FACTOR scales the keys.
func TestAMillionKeys(t *testing.T) {
	factor := benchFactor(t)
	keys := max(1000, int(1_000_000*factor)) / clientsOfKeys * clientsOfKeys
	node := testcluster.Single(t, testcluster.Options{}).Addrs[0]
	lines := []string{"| store    |    keys | calls/s | bytes a key |", "|---|---|---|---|"}
	for _, store := range []string{"embedded", "redis"} {
		dir := t.TempDir()
		publish(t, filepath.Join(dir, "segments"), "new=1-10")
		config := strings.Replace(embedded(dir, "{default: {daily: 1}}"), "server: {", fmt.Sprintf(
			"server: {bounds: {permit_records_per_client: %d, permit_records: %d}, ", keys, 2*keys), 1)
		size := func() int64 { return bytesBelow(t, filepath.Join(dir, "log.db")) }
		if store == "redis" {
			config = strings.Replace(config, fmt.Sprintf("embedded: {path: %s/log.db}", dir),
				fmt.Sprintf("kind: redis, redis: {addrs: [%s], replica_acks: 0}", node), 1)
			size = func() int64 { return memoryOf(t, node) }
		}
		file := filepath.Join(dir, "capper.yaml")
		write(t, file, config+"pacers: {sender: {rate: 1/d, per: key}}\n")
		p := serve(t, file)
		load := permitLoad{addr: strings.TrimPrefix(p.url, "http://"), clients: clientsOfKeys,
			calls: keys / clientsOfKeys, permits: 1, keys: true}
		before := size()
		rate, _ := load.run(t)
		lines = append(lines, fmt.Sprintf("| %-8s | %7d | %7.0f | %11.0f |", store, keys, rate,
			float64(size()-before)/float64(keys)))
		requireFullKeys(t, load.addr, keys)
		p.signal(syscall.SIGTERM)
	}
	t.Logf("factor %g\n%s", factor, strings.Join(lines, "\n"))
}

// clientsOfKeys is the number of connections of TestAMillionKeys.
const clientsOfKeys = 50

// requireFullKeys checks a thousand of the keys, and one that the client may not have.
func requireFullKeys(t *testing.T, addr string, keys int) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	reader := bufio.NewReader(c)
	for key := 0; key < keys; key += keys / 1000 {
		answer, err := ask(c, reader, askOf(key))
		require.NoError(t, err)
		require.Zero(t, answer.Granted, key)
	}
	_, err = ask(c, reader, askOf(keys))
	require.ErrorContains(t, err, api.CodeTooManyRecords)
}

// askOf returns the call for a permit of a key.
func askOf(key int) string {
	return fmt.Sprintf(`{"pacers": ["sender"], "permits": 1, "key": "key-%07d"}`, key)
}

// bytesBelow returns the size of the files in a directory.
func bytesBelow(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		info, err := file.Info()
		if err == nil {
			bytes += info.Size()
		}
		return nil // the store removes files of its own at any time
	}))
	return bytes
}

// memoryOf returns the memory in use by a Redis server.
func memoryOf(t *testing.T, addr string) int64 {
	t.Helper()
	node := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true})
	defer node.Close()
	info, err := node.Info(t.Context(), "memory").Result()
	require.NoError(t, err)
	return int64(topology.ParseInfo(info).Number("used_memory"))
}

// permitLoad is calls for permits by clients at once, each on a connection of its own.
type permitLoad struct {
	addr    string
	clients int
	calls   int // of a client
	permits int // of a call
	ids     bool
	keys    bool // each call has a key of its own
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
		if l.keys {
			request = askOf(client*l.calls + call)
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
