package redisstore

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testkit"
)

// proxy sits between a store and a node. It understands the protocol well enough to cut a connection after a number
// of replies in a pipeline.
type proxy struct {
	listener net.Listener
	target   string
	open     sync.WaitGroup

	// cut is after how many answers of a pipeline with script calls its
	// connection is cut, or one of the constants.
	cut   atomic.Int64
	delay atomic.Int64 // nanoseconds before each answer
	cuts  atomic.Int64 // connections that were cut

	hold atomic.Pointer[held] // nil: no answer is held back
}

// held are replies to script calls that the proxy holds back.
type held struct {
	some    chan struct{} // one is, and can be taken
	release chan struct{}
}

// holdBack holds back all further replies to script calls.
func (x *proxy) holdBack() *held {
	h := &held{some: make(chan struct{}, 1), release: make(chan struct{})}
	x.hold.Store(h)
	return h
}

const (
	cutNever     = -1
	cutAtWait    = -2 // all answers but the last
	cutAfterWait = -3
)

// proxies dials every node through its own proxy.
type proxies struct {
	mu     sync.Mutex
	byAddr map[string]*proxy
	t      testing.TB
}

func newProxies(t testing.TB) *proxies { return &proxies{byAddr: map[string]*proxy{}, t: t} }

func (p *proxies) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, p.to(addr).listener.Addr().String())
}

func (p *proxies) to(addr string) *proxy {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.byAddr[addr]; x != nil {
		return x
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(p.t, err)
	x := &proxy{listener: listener, target: addr}
	x.cut.Store(cutNever)
	p.byAddr[addr] = x
	x.open.Go(x.accept)
	p.t.Cleanup(func() {
		_ = listener.Close()
		x.open.Wait()
	})
	return x
}

func (p *proxies) each(do func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.byAddr {
		do(x)
	}
}

// cuts returns how many connections were cut.
func (p *proxies) cuts() (n int64) {
	p.each(func(x *proxy) { n += x.cuts.Load() })
	return n
}

func (x *proxy) accept() {
	for {
		client, err := x.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", x.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		requests := make(chan string, 10_000)
		x.open.Go(func() { x.forward(client, server, requests) })
		x.open.Go(func() { x.answer(server, client, requests) })
	}
}

// forward forwards requests and sends the name of each command to the channel.
func (x *proxy) forward(client, server net.Conn, requests chan<- string) {
	defer func() { _, _ = client.Close(), server.Close() }()
	defer close(requests)
	r := bufio.NewReaderSize(client, 1<<16)
	for {
		frame, name, err := readFrame(r)
		if err != nil {
			return
		}
		requests <- strings.ToLower(name)
		if _, err := server.Write(frame); err != nil {
			return
		}
	}
}

// answer forwards replies and counts the replies to script calls.
func (x *proxy) answer(server, client net.Conn, requests <-chan string) {
	defer func() { _, _ = client.Close(), server.Close() }()
	r, answered := bufio.NewReaderSize(server, 1<<16), int64(0)
	for name := range requests {
		frame, _, err := readFrame(r)
		if err != nil {
			return
		}
		if d := time.Duration(x.delay.Load()); d > 0 {
			<-time.After(d)
		}
		if h := x.hold.Load(); h != nil && name == "evalsha" {
			select {
			case h.some <- struct{}{}:
			default:
			}
			<-h.release
		}
		cut, counted := x.cut.Load(), name == "evalsha" || name == "wait"
		if counted && cut >= 0 && answered >= cut || cut == cutAtWait && name == "wait" {
			x.cuts.Add(1)
			return
		}
		if counted {
			answered++
		}
		if name == "wait" {
			answered = 0
		}
		if _, err := client.Write(frame); err != nil {
			return
		}
		if cut == cutAfterWait && name == "wait" {
			x.cuts.Add(1)
			return
		}
	}
}

// readFrame reads one value of the protocol; name is its first bulk string.
func readFrame(r *bufio.Reader) (frame []byte, name string, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, "", err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$':
		if n < 0 {
			return line, "", nil
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, "", err
		}
		return append(line, body...), string(body[:n]), nil
	case '*':
		for i := range n {
			part, first, err := readFrame(r)
			if err != nil {
				return nil, "", err
			}
			if i == 0 {
				name = first
			}
			line = append(line, part...)
		}
		return line, name, nil
	case '+', '-', ':':
		return line, "", nil
	}
	return nil, "", errors.New("not a value of the protocol")
}

// A retry within one call finds the call's own entry. The result is Allowed, because no earlier call recorded the
// send.
func TestOwnRetryIsNoReplay(t *testing.T) {
	t.Parallel()
	between := newProxies(t)
	s := openShared(t, func(c *Config) { c.dial = between.dial })
	users := []capping.UserID{1, 2, 3}
	between.each(func(x *proxy) { x.cut.Store(0) })
	healed := time.AfterFunc(200*time.Millisecond, func() { between.each(func(x *proxy) { x.cut.Store(cutNever) }) })
	defer healed.Stop()
	require.Equal(t, 3, count(filter(t, s, batchOf("a", users, rolling(1, time.Hour))), capping.Allowed))
	require.Equal(t, 3, count(filter(t, s, batchOf("a", users, rolling(1, time.Hour))), capping.Replayed))
}

func TestSlowAnswersOfOneNodeHoldUpNoOther(t *testing.T) {
	t.Parallel()
	between := newProxies(t)
	s := openShared(t, func(c *Config) { c.dial = between.dial })
	slow := s.top.Route(0)
	between.to(slow.Addr()).delay.Store(int64(5 * time.Second))
	users := spread(2000)
	testkit.Eventually(t, func() bool { // on a busy machine the others may be late as well
		verdicts := make([]capping.Verdict, len(users))
		err := s.Filter(background(t, 600*time.Millisecond), batchOf("a", users, rolling(1, time.Hour)), verdicts)
		require.ErrorContains(t, err, "users undecided (deadline)")
		open := 0
		for i, v := range verdicts {
			if s.top.Route(s.keyspace.Partition(users[i])) == slow {
				require.Equal(t, capping.Unavailable, v.Outcome)
			} else if v.Outcome == capping.Unavailable {
				open++
			}
		}
		return open == 0 && count(verdicts, capping.Denied) == 0
	})
	between.to(slow.Addr()).delay.Store(0)
}
