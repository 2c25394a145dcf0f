package redisstore

import (
	"context"
	"fmt"
	"net"
	"time"
)

// mostRead is what a server may say on one connection: what is asked of it are some kilobytes, a hundred
// of each node in a cluster. The client reads a line as long as it goes on.
const mostAnswered = 8 << 20

// dial connects to a server of which nothing is known: it may be no Redis, or somebody's who means harm.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 2 * attempt, KeepAlive: 5 * time.Minute}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &bounded{Conn: conn, addr: addr, left: mostAnswered}, nil
}

// bounded is a connection on which only so much is read.
type bounded struct {
	net.Conn
	addr string
	left int // one goroutine reads at a time
}

// Read reads what is left of the bound.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("server %s sent a response of %d bytes, longer than any Redis response: another "+
			"service may listen there", b.addr,
			mostAnswered)
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
