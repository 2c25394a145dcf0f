package rentedtest

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"sync"
)

// Names is a DNS server on loopback, whose answers last for no time.
type Names struct {
	conn  net.PacketConn
	mu    sync.Mutex
	hosts map[string][]string
	asked map[string]int
	wait  sync.WaitGroup
}

// NewNames is a server that knows no name.
func NewNames() (*Names, error) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &Names{conn: conn, hosts: map[string][]string{}, asked: map[string]int{}}
	n.wait.Go(n.serve)
	return n, nil
}

// Close ends the server.
func (n *Names) Close() {
	_ = n.conn.Close()
	n.wait.Wait()
}

// Resolver asks this server alone.
func (n *Names) Resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", n.conn.LocalAddr().String())
	}}
}

// Point gives the name these IPv4 addresses from now on.
func (n *Names) Point(host string, ips ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = ips
}

// Asked is how often the name was asked for.
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

// The layout of a message is that of RFC 1035, 4.1: 12 bytes of header, the
// question as labels with their lengths, its type and class.
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
	if kind != 1 { // IPv4 alone
		return reply
	}
	for _, ip := range ips {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, net.ParseIP(ip).To4()...)
		reply[7]++
	}
	return reply
}
