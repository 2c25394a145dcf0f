package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority is a certificate authority for tests. The directory in the field Dir contains the authority's certificate
// in the file ca.crt. For each issued certificate, the directory Dir contains the certificate in NAME.crt and the
// private key in NAME.key.
type Authority struct {
	Dir         string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

// NewAuthority returns a new certificate authority for a test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{Dir: t.TempDir()}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.sign(t, "ca", a.certificate)
	return a
}

// The method "sign" signs a certificate, and writes the certificate and the private key to files.
func (a *Authority) sign(t testing.TB, name string, certificate *x509.Certificate) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	parent, signer := a.certificate, a.key
	if signer == nil {
		parent, signer = certificate, key
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		a.File(name + ".crt"): {Type: "CERTIFICATE", Bytes: der},
		a.File(name + ".key"): {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return key
}

// File returns the path of a file in the directory of the certificate authority.
func (a *Authority) File(name string) string { return filepath.Join(a.Dir, name) }

// The method Leaf issues a certificate for a TLS server or TLS client, with the given host names and IP addresses. The
// certificate is valid for an hour. Without hosts, the certificate is for 127.0.0.1.
func (a *Authority) Leaf(t testing.TB, name string, hosts ...string) {
	t.Helper()
	a.LeafUntil(t, name, time.Now().Add(time.Hour), hosts...)
}

// LeafUntil works like Leaf, but the certificate is valid until the time in the argument "end".
func (a *Authority) LeafUntil(t testing.TB, name string, end time.Time, hosts ...string) {
	t.Helper()
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if len(hosts) == 0 {
		hosts = []string{"127.0.0.1"}
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			certificate.IPAddresses = append(certificate.IPAddresses, ip)
		} else {
			certificate.DNSNames = append(certificate.DNSNames, host)
		}
	}
	a.sign(t, name, certificate)
}

// The method Pool returns a certificate pool that contains only this certificate authority.
func (a *Authority) Pool(t testing.TB) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(a.File("ca.crt"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	return pool
}

// Client returns the TLS configuration of a client that trusts this certificate authority. The client has a
// certificate of its own.
func (a *Authority) Client(t testing.TB) *tls.Config {
	t.Helper()
	a.Leaf(t, "client")
	pair, err := tls.LoadX509KeyPair(a.File("client.crt"), a.File("client.key"))
	require.NoError(t, err)
	return &tls.Config{RootCAs: a.Pool(t), Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}
