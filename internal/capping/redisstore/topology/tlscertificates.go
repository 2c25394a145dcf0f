package topology

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// CertificateHint returns a hint for the operator if the error says that a server's TLS certificate was rejected. For
// other errors, CertificateHint returns "".
func CertificateHint(err error) string {
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &host):
		return fmt.Sprintf("the server's certificate is for %s and not for %s: set tls.server_name to a name that "+
			"it has, or use that name in addrs",
			strings.Join(holders(host.Certificate), ", "), host.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate is not valid yet or has expired: renew it (or set this machine's clock)"
	case errors.As(err, &unknown):
		return "set tls.ca_file to the certificates of the authority that signed the server's"
	}
	return ""
}

// The function "holders" returns the host names and IP addresses for which a TLS certificate is valid.
func holders(certificate *x509.Certificate) []string {
	all := slices.Clone(certificate.DNSNames)
	for _, ip := range certificate.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return []string{"nobody"}
	}
	slices.Sort(all)
	return all
}

// clientHint returns a hint for the operator of a server that completes a TLS handshake and then does not reply. Such a
// server requires a client certificate, or rejects the certificate of this client.
func (o *Options) clientHint(ctx context.Context, conn net.Conn) string {
	asked, shown := false, false
	settings := o.TLS.Clone()
	settings.InsecureSkipVerify = true // the certificate needs no check, because no data is sent
	settings.Certificates = nil
	settings.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		if own := o.TLS.GetClientCertificate; own != nil {
			shown = true
			return own(request)
		}
		if len(o.TLS.Certificates) > 0 {
			shown = true
			return &o.TLS.Certificates[0], nil
		}
		return &tls.Certificate{}, nil
	}
	_ = tls.Client(conn, settings).HandshakeContext(ctx)
	switch {
	case asked && shown:
		return "the server requires a client certificate and rejects the one in cert_file: it must be signed by an " +
			"authority in the server's tls-ca-cert-file, and must not have expired"
	case asked:
		return "the server requires a client certificate: set tls.cert_file and key_file"
	}
	return ""
}
