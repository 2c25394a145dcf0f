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

// certificate is what a server showed at the latest handshake of TLS with it.
type certificate struct {
	Ends    time.Time // of the certificate, or of one on its way to the authority when that ends first
	Refusal error     // why a new connection does not believe it, or nil
	seen    time.Time
}

// Shown are the certificates of servers, by the address that was dialed. It is safe for concurrent
// use; on nil nothing is noted.
type Shown struct {
	mu sync.Mutex
	by map[string]certificate
}

// forgetAfter is how long a certificate is remembered of a server that shakes no hands any more.
const rememberCertificate = 10 * time.Minute

// All are the certificates that were shown lately.
func (s *Shown) All() map[string]certificate {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.by, func(_ string, c certificate) bool { return time.Since(c.seen) > rememberCertificate })
	return maps.Clone(s.by)
}

// note keeps what became of a handshake. One that failed for another reason than the certificate tells nothing of it.
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

// endOf is when the first certificate of a chain ends. An authority that signed itself is believed for what this
// machine has of it.
func endOf(chain []*x509.Certificate) time.Time {
	ends := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(ends) && !slices.Equal(c.RawIssuer, c.RawSubject) {
			ends = c.NotAfter
		}
	}
	return ends
}

// Look shakes hands with the server at addr as a new connection would, and ends it: Shown keeps the certificate.
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
