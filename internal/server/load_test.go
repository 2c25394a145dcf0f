package server_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// loadVariable makes the test binary send the load in the variable. A separate process keeps its CPU time out of the
// service's.
const loadVariable = "CAPPER_TEST_LOAD"

// load describes the requests to send.
type load struct {
	Addr     string
	Path     string
	Users    int    // users of a request
	Bitmap   bool   // one id in 27, as a bitmap; otherwise random ids in JSON
	UUIDs    bool   // the ids are UUIDs as strings
	Body     string // the same body for every request, instead of users
	Requests int
	Conns    int
}

// loaded is the result of a load.
type loaded struct {
	Seconds  float64
	P50, P99 time.Duration
}

// runLoad sends the load. It first waits for a line of input, so that the creation of bodies is not measured.
func runLoad(text string) error {
	var l load
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return err
	}
	if l.Body != "" {
		return l.report([][]byte{[]byte(l.Body)})
	}
	bodies := make([][]byte, l.different(l.Requests))
	for i := range bodies {
		bodies[i] = l.body(i)
	}
	return l.report(bodies)
}

// report sends the bodies and prints the result.
func (l *load) report(bodies [][]byte) error {
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	result, err := l.run(bodies)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// different returns how many requests have distinct sends. The number is small enough for the bodies to fit into
// memory.
func (l *load) different(requests int) int {
	return min(requests, max(8, 4_000_000/l.Users), 5000)
}

// user returns user i of a request. Different requests have different ids.
func (l *load) user(request, i int) uint32 {
	if l.Bitmap {
		return uint32(request*l.Users+i) * 27
	}
	return uint32(request*l.Users+i) * 2654435769 >> 5 // up to 134 million, in random order
}

func (l *load) body(request int) []byte {
	users := make([]uint32, l.Users)
	for i := range users {
		users[i] = l.user(request, i)
	}
	body := fmt.Appendf(nil, `{"message_id":"load-%08d",`, request)
	if l.Bitmap {
		audience := roaring.BitmapOf(users...)
		audience.RunOptimize()
		raw, err := audience.ToBytes()
		if err != nil {
			panic(err)
		}
		return fmt.Appendf(body, `"users_bitmap":%q}`, base64.StdEncoding.EncodeToString(raw))
	}
	body = append(body, `"user_ids":[`...)
	for i, user := range users {
		if i > 0 {
			body = append(body, ',')
		}
		if l.UUIDs {
			random := uint64(user+1) * 0x9e3779b97f4a7c15
			body = fmt.Appendf(body, `"%08x-%04x-4%03x-8%03x-%012x"`, user, random>>48, random>>36&0xfff, random>>24&0xfff,
				random*0xbf58476d1ce4e5b9>>16)
			continue
		}
		body = strconv.AppendUint(body, uint64(user), 10)
	}
	return append(body, "]}"...)
}

func (l *load) run(bodies [][]byte) (loaded, error) {
	var next atomic.Int64
	var mu sync.Mutex
	var failed error
	var took []time.Duration
	var conns sync.WaitGroup
	start := time.Now()
	for range l.Conns {
		conns.Go(func() {
			times, err := l.converse(&next, bodies)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, times...)
			if err != nil {
				failed = err
			}
		})
	}
	conns.Wait()
	seconds := time.Since(start).Seconds()
	slices.Sort(took)
	if failed != nil || len(took) == 0 {
		return loaded{}, failed
	}
	return loaded{seconds, took[len(took)/2], took[len(took)*99/100]}, nil
}

// converse sends requests over one connection until all have been sent.
func (l *load) converse(next *atomic.Int64, bodies [][]byte) (took []time.Duration, err error) {
	c, err := net.Dial("tcp", l.Addr)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	reader := bufio.NewReaderSize(c, 1<<16)
	for {
		n := int(next.Add(1)) - 1
		if n >= l.Requests {
			return took, nil
		}
		body := bodies[n%len(bodies)]
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: "+
			"application/json\r\nContent-Length: %d\r\n\r\n", l.Path, len(body))
		start := time.Now()
		buffers := net.Buffers{[]byte(head), body}
		if _, err := buffers.WriteTo(c); err != nil {
			return took, err
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return took, err
		}
		if response.StatusCode != http.StatusOK {
			text, _ := io.ReadAll(response.Body)
			return took, fmt.Errorf("status %d: %s", response.StatusCode, text)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return took, err
		}
		took = append(took, time.Since(start))
	}
}

func (l load) text() string {
	var b strings.Builder
	if err := json.NewEncoder(&b).Encode(l); err != nil {
		panic(err)
	}
	return b.String()
}
