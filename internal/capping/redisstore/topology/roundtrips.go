package topology

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"time"
)

// RoundTrips estimates the round-trip time to a server: the larger of its shortest recent connection time and its
// shortest recent first reply. A slow server still accepts connections quickly, and a hung server does not reply. The
// estimate therefore measures only the distance to the server. A RoundTrips value is safe for concurrent use.
type RoundTrips struct {
	mu               sync.Mutex
	connects, firsts samples
}

// samples holds the latest eight durations.
type samples struct {
	latest [8]time.Duration
	n      int
}

func (s *samples) add(d time.Duration) {
	s.latest[s.n%len(s.latest)] = d
	s.n++
}

// least returns the shortest of the stored durations, or 0 if there are none.
func (s *samples) least() time.Duration {
	var least time.Duration
	for i, d := range s.latest[:min(s.n, len(s.latest))] {
		if i == 0 || d < least {
			least = d
		}
	}
	return least
}

// Time returns the estimated round-trip time to the server, or 0 while it is not known.
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

// tripsOfAttempt is the number of round trips that an attempt at a request gets in addition to its time limit. A new
// connection needs one round trip to connect, two for TLS and one to log in.
const tripsOfAttempt = 4

// Patience returns the time limit d for a request, extended by the round trips to the server. The extension of the time
// limit is bounded. A server whose round trip takes longer than the limit of an attempt is not supported.
func (r *RoundTrips) Patience(d, attempt time.Duration) time.Duration {
	return d + tripsOfAttempt*min(r.Time(), attempt)
}

// LongestAttempt returns the longest limit that Patience can return for one attempt.
func (o *Options) LongestAttempt() time.Duration { return (1 + tripsOfAttempt) * o.AttemptTimeout }

// dialThrough returns a dial function that uses the configured settings and measures round trips.
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

// believe sets the trusted certificate authorities of a TLS configuration to those that Authorities returns now.
func (o *Options) believe(settings *tls.Config) (err error) {
	if o.Authorities != nil {
		settings.RootCAs, err = o.Authorities()
	}
	return err
}

// timedConn is a connection that measures the time from the first request to its reply. Only one goroutine at a time
// may use a timedConn.
type timedConn struct {
	net.Conn
	trips *RoundTrips
	sent  time.Time
	done  bool
}

// Write sends b and starts the time measurement at the first request.
func (c *timedConn) Write(b []byte) (int, error) {
	if !c.done && c.sent.IsZero() {
		c.sent = time.Now()
	}
	return c.Conn.Write(b)
}

// Read reads into b and stops the time measurement at the first reply.
func (c *timedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.done {
		c.done = true
		c.trips.note(&c.trips.firsts, time.Since(c.sent))
	}
	return n, err
}

// timedSocket is a timedConn that lets the Redis library detect a connection that was closed while
// idle.
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
