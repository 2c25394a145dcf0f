package server

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// crowd is the open connections of a listener, up to a bound. When one more
// comes, the address that has most of them loses one: one between requests,
// the longest so, or else, when the newcomer's address has fewer, its oldest.
// When neither is there, the newcomer is closed.
type crowd struct {
	bound int

	mu      sync.Mutex
	now     int
	closed  int64 // for the bound, since the start
	guests  map[net.Conn]*guest
	parties map[string]*party
}

// party is the connections of one address.
type party struct {
	address string
	all     *list.List // of *guest, in the order in which they came
	idle    *list.List // of *guest between requests, in the order in which they became so
}

type guest struct {
	conn      net.Conn
	of        *party
	all, idle *list.Element // idle nil: in a request
}

func newCrowd(bound int) *crowd {
	return &crowd{bound: bound, guests: map[net.Conn]*guest{}, parties: map[string]*party{}}
}

// watch is an http.Server's ConnState.
func (c *crowd) watch(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch g := c.guests[conn]; {
	case state == http.StateNew:
		c.enter(conn)
	case g == nil: // closed for the bound
	case state == http.StateIdle:
		g.rest()
	case state == http.StateActive:
		g.wake()
	default:
		c.leave(g)
	}
}

func (g *guest) rest() {
	if g.idle == nil {
		g.idle = g.of.idle.PushBack(g)
	}
}

func (g *guest) wake() {
	if g.idle != nil {
		g.of.idle.Remove(g.idle)
		g.idle = nil
	}
}

func (c *crowd) enter(conn net.Conn) {
	address := addressOf(conn.RemoteAddr().String())
	p := c.parties[address]
	if p == nil {
		p = &party{address: address, all: list.New(), idle: list.New()}
		c.parties[address] = p
	}
	g := &guest{conn: conn, of: p}
	c.guests[conn] = g
	g.all = p.all.PushBack(g)
	if c.now++; c.now > c.bound {
		c.expel(c.surplus(g))
	}
}

// surplus is the connection to close for the newcomer.
func (c *crowd) surplus(newcomer *guest) *guest {
	largest := newcomer.of
	for _, p := range c.parties {
		if p.all.Len() > largest.all.Len() {
			largest = p
		}
	}
	if longest := largest.idle.Front(); longest != nil {
		return longest.Value.(*guest)
	}
	if largest == newcomer.of {
		return newcomer
	}
	return largest.all.Front().Value.(*guest)
}

func (c *crowd) expel(g *guest) {
	c.leave(g)
	c.closed++
	conn := g.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn() // without the goodbye of TLS, which may wait for the other end
	}
	_ = conn.Close()
}

func (c *crowd) leave(g *guest) {
	delete(c.guests, g.conn)
	g.wake()
	g.of.all.Remove(g.all)
	if g.of.all.Len() == 0 {
		delete(c.parties, g.of.address)
	}
	c.now--
}

// usage is how many connections are open, and how many have been closed for
// the bound since the start.
func (c *crowd) usage() (open int, closed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.closed
}
