package topology

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"syscall"
	"time"
)

// RoundTrips estimates the time of a round trip to a server. The estimate is the larger of two times: the shortest time
// of a recent connection attempt, and the shortest time to a recent first reply. The estimate depends mostly on the
// distance to the server. A slow server still accepts connections quickly, and a hung server does not reply at all. A
// RoundTrips value is safe for concurrent use.
type RoundTrips struct {
	mu               sync.Mutex
	connects, firsts samples
}

// The type "samples" holds the latest eight durations.
type samples struct {
	latest [8]time.Duration
	n      int
}

func (s *samples) add(d time.Duration) {
	s.latest[s.n%len(s.latest)] = d
	s.n++
}

// The method "least" returns the shortest duration among the samples, or 0 without samples.
func (s *samples) least() time.Duration {
	var least time.Duration
	for i, d := range s.latest[:min(s.n, len(s.latest))] {
		if i == 0 || d < least {
			least = d
		}
	}
	return least
}

// The method Time returns the estimated time of a round trip to the server, or 0 without an estimate.
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

// tripsOfAttempt is the number of round trips that are added to the time limit of an attempt. A new connection needs
// one round trip to connect, two for TLS and one to log in.
const tripsOfAttempt = 4

// Patience returns a time limit for a request: the duration d plus four round trips to the server. Each added round
// trip is at most as long as the argument "attempt", because capper does not support servers with longer round trips.
func (r *RoundTrips) Patience(d, attempt time.Duration) time.Duration {
	return d + tripsOfAttempt*min(r.Time(), attempt)
}

// LongestAttempt returns the longest possible time limit of an attempt; see Patience.
func (o *Options) LongestAttempt() time.Duration { return (1 + tripsOfAttempt) * o.AttemptTimeout }

// dialThrough returns a dial function that uses the configured settings and measures round trips to the server.
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

// The method "believe" makes a TLS configuration trust the certificate authorities that the function Authorities
// returns now.
func (o *Options) believe(settings *tls.Config) (err error) {
	if o.Authorities != nil {
		settings.RootCAs, err = o.Authorities()
	}
	return err
}

// A timedConn is a connection that measures the time from the first request to the first reply. Only one goroutine at a
// time may use a timedConn.
type timedConn struct {
	net.Conn
	trips *RoundTrips
	sent  time.Time
	done  bool
}

// The method Write sends the bytes b. At the first request on the connection, Write starts the measurement of the round
// trip.
func (c *timedConn) Write(b []byte) (int, error) {
	if !c.done && c.sent.IsZero() {
		c.sent = time.Now()
	}
	return c.Conn.Write(b)
}

// The method Read reads into the slice b. At the first reply on the connection, Read stops the measurement of the round
// trip.
func (c *timedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.done {
		c.done = true
		c.trips.note(&c.trips.firsts, time.Since(c.sent))
	}
	return n, err
}

// A timedSocket is a timedConn that lets the Redis library detect that an idle connection was closed.
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
