package admission

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Crowd is the open connections of a listener, up to a bound. When one more
// comes, the address that has most of them loses one: one between requests,
// the longest so, or else, when the newcomer's address has fewer, its oldest.
// When neither is there, the newcomer is closed.
type Crowd struct {
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

// NewCrowd is a crowd of at most so many connections.
func NewCrowd(bound int) *Crowd {
	return &Crowd{bound: bound, guests: map[net.Conn]*guest{}, parties: map[string]*party{}}
}

// Watch is an http.Server's ConnState.
func (c *Crowd) Watch(conn net.Conn, state http.ConnState) {
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

func (c *Crowd) enter(conn net.Conn) {
	address := AddressOf(conn.RemoteAddr().String())
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
func (c *Crowd) surplus(newcomer *guest) *guest {
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

func (c *Crowd) expel(g *guest) {
	c.leave(g)
	c.closed++
	conn := g.conn
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn() // without the goodbye of TLS, which may wait for the other end
	}
	_ = conn.Close()
}

func (c *Crowd) leave(g *guest) {
	delete(c.guests, g.conn)
	g.wake()
	g.of.all.Remove(g.all)
	if g.of.all.Len() == 0 {
		delete(c.parties, g.of.address)
	}
	c.now--
}

// Usage is how many connections are open, and how many have been closed for
// the bound since the start.
func (c *Crowd) Usage() (open int, closed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.closed
}

// Crowds are those of all listeners of a service.
type Crowds struct {
	mu  sync.Mutex
	all []*Crowd
}

// Another is the crowd of one more listener.
func (c *Crowds) Another(bound int) *Crowd {
	c.mu.Lock()
	defer c.mu.Unlock()
	crowd := NewCrowd(bound)
	c.all = append(c.all, crowd)
	return crowd
}

// Usage is the sum of the crowds' usages.
func (c *Crowds) Usage() (open int, closed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, crowd := range c.all {
		o, n := crowd.Usage()
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
