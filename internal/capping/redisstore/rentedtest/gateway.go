package rentedtest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// A Gateway is a TCP proxy in front of test servers. A Gateway listens at a separate address, and forwards each
// connection to a server, like network address translation.
type Gateway struct {
	listener net.Listener
	next     atomic.Uint64
	mu       sync.Mutex
	targets  []string
	open     map[net.Conn]bool
	closed   bool
	wait     sync.WaitGroup
}

// NewGateway starts a proxy at the address addr, which forwards each connection to the next target in a list.
func NewGateway(addr string, targets ...string) (*Gateway, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	g := &Gateway{listener: listener, targets: targets, open: map[net.Conn]bool{}}
	g.wait.Go(g.accept)
	return g, nil
}

// Addr returns the address of the gateway.
func (g *Gateway) Addr() string { return g.listener.Addr().String() }

// The method Close stops the gateway and closes all its connections.
func (g *Gateway) Close() {
	_ = g.listener.Close()
	g.mu.Lock()
	g.closed = true
	for conn := range g.open {
		_ = conn.Close()
	}
	g.mu.Unlock()
	g.wait.Wait()
}

func (g *Gateway) accept() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", g.targets[g.next.Add(1)%uint64(len(g.targets))])
		if err != nil {
			_ = client.Close()
			continue
		}
		if !g.keep(client, server) {
			_, _ = client.Close(), server.Close()
			return
		}
		g.wait.Go(func() { carry(client, server) })
		g.wait.Go(func() { carry(server, client) })
	}
}

// The method "keep" stores connections that Close must close. If Close has already run, "keep" stores nothing and
// returns false.
func (g *Gateway) keep(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	for _, conn := range conns {
		g.open[conn] = true
	}
	return true
}

func carry(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	_ = from.Close()
	_ = to.Close()
}
