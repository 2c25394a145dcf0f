package rentedtest

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
)

// Names is a DNS server on the loopback interface for tests. The DNS server sends replies with a TTL of 0.
type Names struct {
	conn  net.PacketConn
	mu    sync.Mutex
	hosts map[string][]string
	asked map[string]int
	wait  sync.WaitGroup
}

// NewNames starts a DNS server that has no host names yet.
func NewNames() (*Names, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &Names{conn: conn, hosts: map[string][]string{}, asked: map[string]int{}}
	n.wait.Go(n.serve)
	return n, nil
}

// The method Close stops the DNS server.
func (n *Names) Close() {
	_ = n.conn.Close()
	n.wait.Wait()
}

// Resolver returns a resolver that asks only this DNS server.
func (n *Names) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

// The method Point sets the IPv4 addresses of the host name.
func (n *Names) Point(host string, ips ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = ips
}

// The method Asked returns the number of queries for the host name that the DNS server has received.
func (n *Names) Asked(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[host]
}

func (n *Names) serve() {
	buffer := make([]byte, 1500)
	for {
		length, from, err := n.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if reply := n.answer(buffer[:length]); reply != nil {
			_, _ = n.conn.WriteTo(reply, from)
		}
	}
}

// The method "answer" returns the reply to a DNS query. The format follows RFC 1035, section 4.1. A query has a header
// of 12 bytes, the host name as labels with lengths, and the type and the class of the query.
func (n *Names) answer(query []byte) []byte {
	var labels []string
	at := 12
	for at < len(query) && query[at] != 0 {
		end := at + 1 + int(query[at])
		if end > len(query) {
			return nil
		}
		labels = append(labels, string(query[at+1:end]))
		at = end
	}
	if at+5 > len(query) {
		return nil
	}
	host, kind := strings.ToLower(strings.Join(labels, ".")), binary.BigEndian.Uint16(query[at+1:])
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked[host]++
	ips, known := n.hosts[host]
	reply := append([]byte{query[0], query[1], 0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:at+5]...)
	if !known {
		reply[3] = 3 // no such name
		return reply
	}
	if kind != 1 { // the server has only IPv4 addresses
		return reply
	}
	for _, ip := range ips {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, net.ParseIP(ip).To4()...)
		reply[7]++
	}
	return reply
}
