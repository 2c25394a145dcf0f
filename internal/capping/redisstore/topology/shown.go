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

// certificate holds the TLS certificate that a server showed in its latest handshake.
type certificate struct {
	Ends    time.Time // expiry of the certificate, or of an intermediate certificate that expires earlier
	Refusal error     // why new connections reject the certificate, or nil
	seen    time.Time
}

// A Shown collects the TLS certificates that servers present. The key of each certificate is the address that was
// dialed. Shown is safe for concurrent use. A nil Shown records nothing.
type Shown struct {
	mu sync.Mutex
	by map[string]certificate
}

// rememberCertificate is the time for which Shown keeps a server's certificate after the last TLS handshake with the
// server.
const rememberCertificate = 10 * time.Minute

// All returns a map: the key is the address of a server, and the value is the TLS certificate that the server recently
// presented.
func (s *Shown) All() map[string]certificate {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.by, func(_ string, c certificate) bool { return time.Since(c.seen) > rememberCertificate })
	return maps.Clone(s.by)
}

// note stores the certificate that a server showed in a TLS handshake, and whether the handshake succeeded. note
// ignores a handshake that failed for another reason than the certificate.
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

// endOf returns when a certificate chain expires: the earliest expiry in it. endOf skips a self-signed authority,
// because this machine uses its own copy of the authority.
func endOf(chain []*x509.Certificate) time.Time {
	ends := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(ends) && !slices.Equal(c.RawIssuer, c.RawSubject) {
			ends = c.NotAfter
		}
	}
	return ends
}

// Look makes a TLS handshake with the server at addr, as a new connection of the store would, and then closes the
// connection. After Look has returned, the field Shown contains the certificate of the server.
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
