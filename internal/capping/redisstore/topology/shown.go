package topology

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// The type "certificate" holds data about the TLS certificate of a server in the latest handshake.
type certificate struct {
	Ends    time.Time // expiry of the certificate, or of an intermediate certificate that expires earlier
	Refusal error     // reason why new connections reject the certificate, or nil
	seen    time.Time
}

// A Shown collects the TLS certificates that servers present, by dialed address. Shown is safe for concurrent use. A
// nil Shown records nothing.
type Shown struct {
	mu sync.Mutex
	by map[string]certificate
}

// rememberCertificate is the time for which Shown keeps a server's certificate after the last TLS handshake with the
// server.
const rememberCertificate = 10 * time.Minute

// The method All returns the recently presented TLS certificate of each server, by the address of the server.
func (s *Shown) All() map[string]certificate {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.by, func(_ string, c certificate) bool { return time.Since(c.seen) > rememberCertificate })
	return maps.Clone(s.by)
}

// The method "note" stores the certificate of a server from a TLS handshake, and the certificate error of the
// handshake. If the handshake failed for another reason, the method "note" stores nothing.
func (s *Shown) note(addr string, conn *tls.Conn, err error) {
	if s == nil {
		return
	}
	chain := conn.ConnectionState().PeerCertificates
	var refused *tls.CertificateVerificationError
	if errors.As(err, &refused) {
		chain = refused.UnverifiedCertificates
	} else if err != nil {
		return
	}
	if len(chain) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by = map[string]certificate{}
	}
	s.by[addr] = certificate{Ends: endOf(chain), Refusal: err, seen: time.Now()}
}

// endOf returns the earliest expiry in a certificate chain. The function endOf skips a self-signed authority, because
// this machine uses its own copy of the authority.
func endOf(chain []*x509.Certificate) time.Time {
	ends := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(ends) && !slices.Equal(c.RawIssuer, c.RawSubject) {
			ends = c.NotAfter
		}
	}
	return ends
}

// The method Look makes a TLS handshake with the server at addr, like a new connection of the store, and then closes
// the connection. The method Look adds the certificate of the server to the field Shown.
func (o *Options) Look(ctx context.Context, addr string) {
	ctx, cancel := context.WithTimeout(ctx, o.dialTimeout())
	defer cancel()
	conn, err := o.dialer()(ctx, "tcp", addr)
	if err != nil {
		return
	}
	if secure, err := shakeHands(ctx, conn, o, addr); err == nil {
		_ = secure.Close()
	}
}
