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

// The method "look" examines one Redis server for the survey, and stores the findings in n.
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

// The constant "pings" is the number of round trips to a server that the survey measures.
const pings = 7

// The method "ask" reads the clock, the reply of INFO and the settings of the node's server.
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
			break // the Redis user lacks the right; the field Lacking reports this
		}
		// The server read its clock at some instant within the round trip.
		if off := at.Sub(began.Add(took / 2)); i == 0 || took/2 < n.Sure {
			n.Off, n.Sure = off, took/2
		}
		n.Trips = append(n.Trips, took)
	}
	slices.Sort(n.Trips)
	n.askSettings(ctx, client)
	return nil
}

// The variable "settings" lists the settings of Redis servers that the survey reads.
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

// lookAtCertificates reads the TLS certificate chain of the node, even if this machine does not trust the chain. After
// the read, lookAtCertificates checks the chain by the rules of the store's own connections.
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
	open.InsecureSkipVerify = true // the chain is checked below; no data is sent
	shaking := tls.Client(conn, open)
	if err := shaking.HandshakeContext(ctx); err != nil {
		n.Distrust = err
		return
	}
	n.Certificates = shaking.ConnectionState().PeerCertificates
	n.Distrust = believes(n.Certificates, secure, n.Addr, time.Now())
}

// The function "believes" returns the reason why this machine does not trust a certificate chain, or nil if the machine
// trusts the chain.
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

// The function Chain returns a Node that contains only the address and the certificates of the server.
func Chain(addr string, secure *tls.Config) *Node {
	n := &Node{Addr: addr}
	n.lookAtCertificates(context.Background(), secure)
	return n
}

// The method Serving reports whether the node holds hash slots of its cluster.
func (n *Node) Serving() bool { return len(n.member.Slots) > 0 }

// The method Flagged reports whether the cluster has flagged this node as failed.
func (n *Node) Flagged() bool { return slices.Contains(n.Flags, "fail") }

// DistrustHint returns a hint for the operator about the certificate error in the field Distrust. If the cause of the
// certificate error is not known, DistrustHint returns "".
func (n *Node) DistrustHint() string { return topology.CertificateHint(n.Distrust) }
