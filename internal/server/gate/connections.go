package gate

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// connections are the open connections of a listener, up to a bound. When one
// more comes, the address that has most of them loses one: the one that has
// been between requests for longest, or else, when the newcomer's address has
// fewer, its oldest. When there is neither, the newcomer is closed.
type connections struct {
	bound int

	mu        sync.Mutex
	now       int
	closed    int64 // for the bound, since the start
	all       map[net.Conn]*connection
	byAddress map[string]*ofAddress
}

// ofAddress is the connections of one address.
type ofAddress struct {
	address string
	all     *list.List // of *connection, in the order in which they came
	idle    *list.List // of *connection between requests, in the order in which they became so
}

type connection struct {
	conn      net.Conn
	of        *ofAddress
	all, idle *list.Element // idle nil: in a request
}

// newConnections are at most so many connections.
func newConnections(bound int) *connections {
	return &connections{bound: bound, all: map[net.Conn]*connection{}, byAddress: map[string]*ofAddress{}}
}

// Watch is an http.Server's ConnState.
func (c *connections) Watch(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch g := c.all[conn]; {
	case state == http.StateNew:
		c.add(conn)
	case g == nil: // closed for the bound
	case state == http.StateIdle:
		g.markIdle()
	case state == http.StateActive:
		g.markActive()
	default:
		c.remove(g)
	}
}

func (g *connection) markIdle() {
	if g.idle == nil {
		g.idle = g.of.idle.PushBack(g)
	}
}

func (g *connection) markActive() {
	if g.idle != nil {
		g.of.idle.Remove(g.idle)
		g.idle = nil
	}
}

func (c *connections) add(conn net.Conn) {
	address := AddressOf(conn.RemoteAddr().String())
	p := c.byAddress[address]
	if p == nil {
		p = &ofAddress{address: address, all: list.New(), idle: list.New()}
		c.byAddress[address] = p
	}
	g := &connection{conn: conn, of: p}
	c.all[conn] = g
	g.all = p.all.PushBack(g)
	if c.now++; c.now > c.bound {
		c.closeForBound(c.surplus(g))
	}
}

// surplus is the connection to close for the newcomer.
func (c *connections) surplus(newcomer *connection) *connection {
	largest := newcomer.of
	for _, p := range c.byAddress {
		if p.all.Len() > largest.all.Len() {
			largest = p
		}
	}
	if longest := largest.idle.Front(); longest != nil {
		return longest.Value.(*connection)
	}
	if largest == newcomer.of {
		return newcomer
	}
	return largest.all.Front().Value.(*connection)
}

func (c *connections) closeForBound(g *connection) {
	c.remove(g)
	c.closed++
	conn := g.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn() // without the goodbye of TLS, which may wait for the other end
	}
	_ = conn.Close()
}

func (c *connections) remove(g *connection) {
	delete(c.all, g.conn)
	g.markActive()
	g.of.all.Remove(g.all)
	if g.of.all.Len() == 0 {
		delete(c.byAddress, g.of.address)
	}
	c.now--
}

// Usage is how many connections are open, and how many have been closed for
// the bound since the start.
func (c *connections) Usage() (open int, closed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.closed
}

// Listeners are the connections of all listeners of a service.
type Listeners struct {
	mu  sync.Mutex
	all []*connections
}

// Another is the connections of one more listener.
func (l *Listeners) Another(bound int) *connections {
	l.mu.Lock()
	defer l.mu.Unlock()
	connections := newConnections(bound)
	l.all = append(l.all, connections)
	return connections
}

// Usage is the sum of what they use.
func (l *Listeners) Usage() (open int, closed int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, connections := range l.all {
		o, n := connections.Usage()
		open, closed = open+o, closed+n
	}
	return open, closed
}

// AddressOf is whom a connection is counted for: the IP address of its other
// end. Of IPv6 that is the network of 64 bits, in which a machine has as many
// addresses as it likes.
func AddressOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
