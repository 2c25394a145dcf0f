package gate

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// The type "connections" tracks the open connections of a listener and limits the number of connections. When a new
// connection exceeds the limit, the listener closes a connection of the client address with the most connections. The
// listener closes the connection that has been idle for the longest time. If no connection of the client address is
// idle, the listener closes the oldest connection of the address. If the new connection itself comes from the address,
// and none of the address's connections is idle, the listener closes the new connection.
type connections struct {
	bound int

	mu        sync.Mutex
	now       int
	closed    int64 // number of connections closed because of the limit, since the start
	all       map[net.Conn]*connection
	byAddress map[string]*ofAddress
}

// ofAddress holds the open connections from one client address.
type ofAddress struct {
	address string
	all     *list.List // list of *connection, the oldest connection first
	idle    *list.List // list of *connection between requests, the longest idle connection first
}

type connection struct {
	conn      net.Conn
	of        *ofAddress
	all, idle *list.Element // idle is nil during a request
}

// newConnections returns a tracker that allows at most "bound" open connections.
func newConnections(bound int) *connections {
	return &connections{bound: bound, all: map[net.Conn]*connection{}, byAddress: map[string]*ofAddress{}}
}

// Watch tracks the state of a connection. A caller passes the method Watch to an http.Server as its field ConnState.
func (c *connections) Watch(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch g := c.all[conn]; {
	case state == http.StateNew:
		c.add(conn)
	case g == nil: // the connection was closed because of the limit
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

// The method "surplus" returns the connection that the listener closes when a new connection exceeds the limit.
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
		conn = secure.NetConn() // without the TLS close message, because writing it may block
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

// Usage returns the number of open connections, and the number of connections closed because of the limit since the
// start.
func (c *connections) Usage() (open int, closed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.closed
}

// Listeners holds the connection trackers of all listeners of a service.
type Listeners struct {
	mu  sync.Mutex
	all []*connections
}

// The method Another returns the connection tracker for a further network listener.
func (l *Listeners) Another(bound int) *connections {
	l.mu.Lock()
	defer l.mu.Unlock()
	connections := newConnections(bound)
	l.all = append(l.all, connections)
	return connections
}

// Usage returns the number of open connections, and of connections closed because of the limit, over all listeners.
func (l *Listeners) Usage() (open int, closed int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, connections := range l.all {
		o, n := connections.Usage()
		open, closed = open+o, closed+n
	}
	return open, closed
}

// AddressOf returns the address for which a connection is counted: the IP address of the client. If the client has an
// IPv6 address, AddressOf returns the 64-bit network, because one machine can use any address in that network.
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
