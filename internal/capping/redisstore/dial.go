package redisstore

import (
	"context"
	"fmt"
	"net"
	"time"
)

// mostAnswered is the maximum number of bytes that a survey of the servers reads from one connection. The replies of a
// real Redis server take a few kilobytes, plus about a hundred bytes for each node of the cluster. This limit is
// necessary, because the Redis client reads lines of any length.
const mostAnswered = 8 << 20

// The function "dial" connects to a server that capper does not trust yet: the server may be another program than
// Redis, or hostile.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 2 * attempt, KeepAlive: 5 * time.Minute}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &bounded{Conn: conn, addr: addr, left: mostAnswered}, nil
}

// The type "bounded" is a connection with a maximum number of bytes to read.
type bounded struct {
	net.Conn
	addr string
	left int // bytes that may still be read; one goroutine reads at a time
}

// The method Read reads from the connection, and returns an error when the maximum number of bytes is reached.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, fmt.Errorf("server %s sent a response of %d bytes, longer than any Redis response: "+
			"another service may listen there", b.addr, mostAnswered)
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
