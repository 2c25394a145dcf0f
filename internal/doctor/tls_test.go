package doctor

import (
	"capper/internal/testcluster"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates into a directory.
type authority struct {
	dir         string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir(), certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:  x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-1000 * time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
	}}
	a.key = a.sign(t, "ca", a.certificate)
	return a
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// sign writes a certificate and its key.
func (a *authority) sign(t *testing.T, name string, c *x509.Certificate) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.certificate, &key.PublicKey, signer)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(a.file(name+".crt"),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(a.file(name+".key"),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600))
	return key
}

// server signs a certificate for 127.0.0.1 that was made 900 hours ago and ends in so long.
func (a *authority) server(t *testing.T, name string, ends time.Duration) {
	t.Helper()
	a.sign(t, name, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:   time.Now().Add(-900 * time.Hour), NotAfter: time.Now().Add(ends),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func TestCertificatesOfServers(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t, "ours"), newAuthority(t, "another")
	a.server(t, "good", 900*time.Hour)
	a.server(t, "ending", 20*time.Hour)
	a.server(t, "expired", -time.Hour)
	server := testcluster.Single(t, testcluster.Options{Replicas: 0, Settings: goodSettings})
	dir := place(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := free.Addr().(*net.TCPAddr).Port
	require.NoError(t, free.Close())
	cli(t, server.Addrs[0], "config", "set", "tls-ca-cert-file", a.file("ca.crt"), "tls-auth-clients", "no",
		"tls-cert-file", a.file("good.crt"), "tls-key-file", a.file("good.key"))
	cli(t, server.Addrs[0], "config", "set", "tls-port", fmt.Sprint(port))
	for _, test := range []struct {
		certificate, ca string
		result          result
		seen            string
	}{
		{"good", a.file("ca.crt"), OK, "127.0.0.1, valid from"},
		{"ending", a.file("ca.crt"), Warning, "it expires within 20h"},
		{"expired", a.file("ca.crt"), Failed, "it has expired"},
		{"good", stranger.file("ca.crt"), Failed, "certificate signed by unknown authority"},
	} {
		cli(t, server.Addrs[0], "config", "set", "tls-cert-file", a.file(test.certificate+".crt"), "tls-key-file",
			a.file(test.certificate+".key"))
		s := subject(t, dir, redisAt(fmt.Sprintf("127.0.0.1:%d", port),
			", replica_acks: 0, tls: {enabled: true, ca_file: "+test.ca+"}"))
		report := run(t, s)
		require.Contains(t, fmt.Sprint(only(report, "redis.certificates", test.result)), test.seen, "%s: %s",
			test.certificate, bad(report))
	}
}

func TestOwnCertificate(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, "ours")
	a.server(t, "good", 900*time.Hour)
	a.server(t, "expired", -time.Hour)
	for name, result := range map[string]result{"good": OK, "expired": Failed} {
		s := subject(t, place(t), embedded(fmt.Sprintf("server: {tls: {cert_file: %s, key_file: %s}}\n",
			a.file(name+".crt"), a.file(name+".key"))))
		report := run(t, s)
		require.NotEmpty(t, only(report, "certificates.own", result), bad(report))
		if result == OK {
			require.Empty(t, bad(report))
		}
	}
}
