package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// If the remaining validity of a certificate is below the constant "soon", and below a third of the whole validity,
// `capper doctor` reports a warning.
const soon = 14 * 24 * time.Hour

// ownCertificate checks the certificates that the service shows to callers and to Redis.
func ownCertificate(s *Subject) check {
	return check{Name: "certificates.own", Look: func(_ context.Context, n *notes) {
		server, client := s.Config.Server.TLS, s.Config.Store.Redis.TLS
		if server.CertFile == "" && client.CertFile == "" {
			n.Skip("", "the configuration names none")
		}
		for _, f := range [][3]string{{"server.tls", server.CertFile, server.KeyFile},
			{"store.redis.tls", client.CertFile, client.KeyFile}} {
			if f[1] == "" {
				continue
			}
			pair, err := tls.LoadX509KeyPair(f[1], f[2])
			if err != nil {
				n.Fail(f[0], err.Error(), "put the certificate and its key at these paths",
					"the service does not start without them")
				continue
			}
			judgeCertificate(n, f[0], pair.Leaf, s.now())
			if f[0] == "server.tls" {
				judgeNames(n, f[0], pair.Leaf, s.Config.Server.Listen, s.Config.Server.HostNames)
			}
		}
	}}
}

// judgeCertificate adds a finding for a certificate that has expired, is not yet valid, or will expire soon.
func judgeCertificate(n *notes, of string, c *x509.Certificate, now time.Time) {
	seen := fmt.Sprintf("certificate of %s, valid from %s to %s", nameOf(c), c.NotBefore.UTC().Format(time.DateTime),
		c.NotAfter.UTC().Format(time.DateTime))
	const why = "callers and servers that verify it refuse the connection"
	switch {
	case now.After(c.NotAfter):
		n.Fail(of, seen+": it has expired", "renew it; the file is read again when it changes", why)
	case now.Before(c.NotBefore):
		n.Fail(of, seen+": it is not valid yet", "set the clock of this machine, or issue a new certificate", why)
	case c.NotAfter.Sub(now) < soon && c.NotAfter.Sub(now) < c.NotAfter.Sub(c.NotBefore)/3:
		n.Warn(of, seen+": it expires within "+(c.NotAfter.Sub(now)).Round(time.Hour).String(),
			"renew it, and find out why it was not renewed: certificates are normally renewed at a third of their life",
			why+" from then on")
	default:
		n.OK(of, "%s", seen)
	}
}

// judgeNames adds a finding for a listener whose address is not among the names in its certificate.
func judgeNames(n *notes, of string, c *x509.Certificate, addr string, names []string) {
	host, _, _ := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() {
		names = append(slices.Clone(names), host)
	}
	for _, name := range names {
		if err := c.VerifyHostname(name); err != nil {
			n.Warn(of, fmt.Sprintf("%s is not a name in the certificate, which has %s", name, nameOf(c)),
				"issue a certificate with all names that callers use for the service",
				"callers by that name refuse the connection")
		}
	}
}

func nameOf(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return c.Subject.String()
	}
	return strings.Join(names, ", ")
}
