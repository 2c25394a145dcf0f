package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"capper/internal/capping/redisstore/topology"
)

// look asks one node for all that it says.
func (s *survey) look(ctx context.Context, r *Report, n *Node) {
	client := s.client(n.Addr)
	defer func() { _ = client.Close() }()
	if s.config.TLS != nil && s.sentinel() == "" {
		n.lookAtCertificates(ctx, s.config.TLS)
	}
	if n.Err = s.ask(ctx, n, client); n.Err != nil {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, 2*attempt)
	defer cancel()
	if n.Survey, n.Err = s.rules().Survey(bounded, client, s.trial(r, n)); n.Err != nil || n.Lacking != nil {
		return
	}
	s.lookAtStore(bounded, r, n, client)
	s.lookAtLedger(bounded, r, n, client)
}

// pings is how many round trips are measured.
const pings = 7

// ask takes the time, the facts and the settings.
func (s *survey) ask(ctx context.Context, n *Node, client *redis.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 3*attempt)
	defer cancel()
	text, err := client.Info(ctx, "everything").Result()
	if err != nil {
		return err
	}
	n.Facts = topology.ParseInfo(text)
	if state, err := client.ClusterInfo(ctx).Result(); err == nil {
		for name, value := range topology.ParseInfo(state) {
			n.Facts[name] = value
		}
	}
	for i := range pings {
		began := s.config.Clock()
		at, err := client.Time(ctx).Result()
		took := s.config.Clock().Sub(began)
		if err != nil {
			break // the user may not ask; Lacking says so
		}
		// The server's time was read at some instant of the round trip.
		if off := at.Sub(began.Add(took / 2)); i == 0 || took/2 < n.Sure {
			n.Off, n.Sure = off, took/2
		}
		n.Trips = append(n.Trips, took)
	}
	slices.Sort(n.Trips)
	n.askSettings(ctx, client)
	return nil
}

// settings are those that are judged.
var settings = []string{"maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "hash-max-*", "cluster-*",
	"repl-backlog-size", "client-output-buffer-limit", "repl-timeout", "min-replicas-*", "auto-aof-*", "maxclients",
	"timeout"}

func (n *Node) askSettings(ctx context.Context, client *redis.Client) {
	for _, name := range settings {
		got, err := client.ConfigGet(ctx, name).Result()
		if err != nil {
			return
		}
		if n.Settings == nil {
			n.Settings = map[string]string{}
		}
		for name, value := range got {
			n.Settings[name] = value
		}
	}
}

// lookAtCertificates takes the chain that the node shows, believed or not, and then asks whether
// this machine believes it, as a connection of the store would.
func (n *Node) lookAtCertificates(ctx context.Context, secure *tls.Config) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", n.Addr)
	if err != nil {
		n.Away = err
		return
	}
	defer func() { _ = conn.Close() }()
	open := secure.Clone()
	open.InsecureSkipVerify = true // it is looked at below; nothing is sent
	shaking := tls.Client(conn, open)
	if err := shaking.HandshakeContext(ctx); err != nil {
		n.Distrust = err
		return
	}
	n.Certificates = shaking.ConnectionState().PeerCertificates
	n.Distrust = believes(n.Certificates, secure, n.Addr, time.Now())
}

// believes is why a chain is not believed, or nil.
func believes(chain []*x509.Certificate, secure *tls.Config, addr string, now time.Time) error {
	name := secure.ServerName
	if name == "" {
		name, _, _ = net.SplitHostPort(addr)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{DNSName: name, Roots: secure.RootCAs, Intermediates: between,
		CurrentTime: now})
	return err
}

// Chain asks what listens at an address for its certificates alone.
func Chain(addr string, secure *tls.Config) *Node {
	n := &Node{Addr: addr}
	n.lookAtCertificates(context.Background(), secure)
	return n
}

// Serving reports whether the node has slots of its cluster.
func (n *Node) Serving() bool { return len(n.member.Slots) > 0 }

// Flagged reports whether the cluster takes the node for lost.
func (n *Node) Flagged() bool { return slices.Contains(n.Flags, "fail") }

// DistrustHint is what to do about Distrust; "" when nothing is known.
func (n *Node) DistrustHint() string { return topology.CertificateHint(n.Distrust) }
