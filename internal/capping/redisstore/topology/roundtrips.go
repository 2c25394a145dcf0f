package topology

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"time"
)

// RoundTrips is how long the way to a server and back takes: the quickest of
// its latest connections and of their first answers. A slow server answers late
// and connects as ever, and one that hangs gives no answer, so that only
// distance is measured. It is safe for concurrent use.
type RoundTrips struct {
	mu               sync.Mutex
	connects, firsts samples
}

// samples are the latest durations.
type samples struct {
	latest [8]time.Duration
	n      int
}

func (s *samples) add(d time.Duration) {
	s.latest[s.n%len(s.latest)] = d
	s.n++
}

// least is the shortest of them, 0 for none.
func (s *samples) least() time.Duration {
	var least time.Duration
	for i, d := range s.latest[:min(s.n, len(s.latest))] {
		if i == 0 || d < least {
			least = d
		}
	}
	return least
}

// Time is the round trip, 0 while nothing is known.
func (r *RoundTrips) Time() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(r.connects.least(), r.firsts.least())
}

func (r *RoundTrips) note(s *samples, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.add(d)
}

// tripsOfAttempt is how many round trips an attempt gets on top of its time: a
// new connection takes one to connect, two for TLS and one to log in.
const tripsOfAttempt = 4

// Patience is d for a server at this distance. What counts as far is bounded:
// a server further away than an attempt takes is not served.
func (r *RoundTrips) Patience(d, attempt time.Duration) time.Duration {
	return d + tripsOfAttempt*min(r.Time(), attempt)
}

// LongestAttempt is the most that Patience makes of an attempt.
func (o *Options) LongestAttempt() time.Duration { return (1 + tripsOfAttempt) * o.AttemptTimeout }

// dialThrough connects as the configuration says, and takes the time.
func (r *RoundTrips) dialThrough(o *Options) func(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := o.dialer()
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		began := time.Now()
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		r.note(&r.connects, time.Since(began))
		timed := r.timed(conn)
		if o.TLS == nil {
			return timed, nil
		}
		return shakeHands(ctx, timed, o, addr)
	}
}

func shakeHands(ctx context.Context, conn net.Conn, o *Options, addr string) (net.Conn, error) {
	settings := o.TLS.Clone()
	if settings.ServerName == "" {
		settings.ServerName, _, _ = net.SplitHostPort(addr)
	}
	ctx, cancel := context.WithTimeout(ctx, o.dialTimeout())
	defer cancel()
	secure := tls.Client(conn, settings)
	err := o.believe(settings)
	if err == nil {
		err = secure.HandshakeContext(ctx)
		o.Shown.note(addr, secure, err)
	}
	if err != nil {
		_ = conn.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: conn.RemoteAddr(), Err: err}
	}
	return secure, nil
}

// believe sets whose certificates are believed, as they are now.
func (o *Options) believe(settings *tls.Config) (err error) {
	if o.Authorities != nil {
		settings.RootCAs, err = o.Authorities()
	}
	return err
}

// timedConn takes the time from the first request to its answer. One goroutine
// at a time uses it.
type timedConn struct {
	net.Conn
	trips *RoundTrips
	sent  time.Time
	done  bool
}

// Write sends b.
func (c *timedConn) Write(b []byte) (int, error) {
	if !c.done && c.sent.IsZero() {
		c.sent = time.Now()
	}
	return c.Conn.Write(b)
}

// Read reads into b.
func (c *timedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.done {
		c.done = true
		c.trips.note(&c.trips.firsts, time.Since(c.sent))
	}
	return n, err
}

// timedSocket is a timedConn of which the library sees whether it was closed
// while it was idle.
type timedSocket struct {
	*timedConn
	syscall.Conn
}

func (r *RoundTrips) timed(conn net.Conn) net.Conn {
	timed := &timedConn{Conn: conn, trips: r}
	if socket, ok := conn.(syscall.Conn); ok {
		return timedSocket{timed, socket}
	}
	return timed
}
