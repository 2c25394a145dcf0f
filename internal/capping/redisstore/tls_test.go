package redisstore

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
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
)

// authority signs certificates of servers on 127.0.0.1 and of clients.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	dir         string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir()}
	a.certificate = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = a.sign(t, "ca", a.certificate)
	return a
}

// sign writes the certificate and its key to NAME.crt and NAME.key.
func (a *authority) sign(t *testing.T, name string, certificate *x509.Certificate) *ecdsa.PrivateKey {
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
		a.file(name + ".crt"): {Type: "CERTIFICATE", Bytes: der},
		a.file(name + ".key"): {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return key
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// leaf signs a certificate of a server and a client.
func (a *authority) leaf(t *testing.T, name string) {
	t.Helper()
	a.sign(t, name, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// secure gives the server a TLS port beside its plain one, for anybody.
func (a *authority) secure(t *testing.T, server *testcluster.Cluster) (addr string) {
	t.Helper()
	a.leaf(t, "server")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr = free.Addr().String()
	require.NoError(t, free.Close())
	client := admin(t, server.Addrs[0])
	for _, setting := range [][2]string{
		{"tls-ca-cert-file", a.file("ca.crt")}, {"tls-auth-clients", "no"},
	} {
		require.NoError(t, client.ConfigSet(t.Context(), setting[0], setting[1]).Err())
	}
	require.NoError(t, client.Do(t.Context(), "config", "set", "tls-cert-file", a.file("server.crt"), "tls-key-file", a.file("server.key")).Err())
	require.NoError(t, client.ConfigSet(t.Context(), "tls-port", strconv.Itoa(free.Addr().(*net.TCPAddr).Port)).Err())
	return addr
}

// client is the configuration of a client that has a certificate.
func (a *authority) client(t *testing.T) *tls.Config {
	t.Helper()
	a.leaf(t, "client")
	pair, err := tls.LoadX509KeyPair(a.file("client.crt"), a.file("client.key"))
	require.NoError(t, err)
	text, err := os.ReadFile(a.file("ca.crt"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	return &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}
