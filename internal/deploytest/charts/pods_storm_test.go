//go:build storms

package charts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// withKey are values by which key opens the API.
func withKey(t *testing.T, more string) string {
	return written(t, fmt.Sprintf("config: {server: {api_keys: [{client: crm, id: crm-1, sha256: %x, scopes: "+
		"[filter, read]}]}%s}",
		sha256.Sum256([]byte(key)), more))
}

// freePort is one that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// run starts the pod of a rendering; folders are what lies elsewhere, in pairs.
func run(t *testing.T, r *rendering, folders ...string) *pod {
	t.Helper()
	p := &pod{t: t, r: r, public: freePort(t), admin: freePort(t), log: new(testkit.Log), ended: make(chan error, 1)}
	root := t.TempDir()
	publish := exec.Command(program(t, "segmentbuild"), "build", "--to="+root+"/segments", "--segment=vip="+
		filepath.Join(Root(), "testdata/segments/vip.csv"))
	out, err := publish.CombinedOutput()
	require.NoError(t, err, "%s", out)
	folders = append(folders, "s3://segments/prod", root+"/segments", "/var/lib/capper", root+"/data",
		"admin_listen: :9090", "admin_listen: "+p.admin, "listen: :8080", "listen: "+p.public)
	p.config = testkit.NewMount(t,
		map[string]string{"capper.yaml": strings.NewReplacer(folders...).Replace(r.configuration())})

	var args []string
	for _, arg := range r.container().at("args").([]any) {
		args = append(args, strings.Replace(arg.(string), "/etc/capper", p.config.Dir, 1))
	}
	p.process = exec.Command(program(t, "capper"), args...)
	p.process.Env = []string{"PATH=/usr/bin"} // of the container, and nothing else
	for _, env := range r.container().list("env") {
		if value := env.text("value"); value != "" {
			p.process.Env = append(p.process.Env, env.text("name")+"="+value)
		}
	}
	p.process.Stderr = p.log
	require.NoError(t, p.process.Start())
	go func() { p.ended <- p.process.Wait() }()
	t.Cleanup(func() { _ = p.process.Process.Kill() })
	for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
		path := r.container().text(probe, "httpGet", "path")
		testkit.Eventually(t, func() bool { return p.ask(p.public, path, "") == http.StatusOK }, "%s", p.log)
	}
	return p
}

// The pod over the embedded store runs: probes are answered, the key opens it, metrics are where
// Prometheus asks, a swapped Secret is in force, and it stops in time.
func TestThePodRuns(t *testing.T) {
	t.Parallel()
	r := render(t, valuesFiles(t)["embedded"], withKey(t, ""))
	p := run(t, r, "stop_delay: 15s", "stop_delay: 0s")
	require.Equal(t, http.StatusUnauthorized, p.ask(p.public, "/v1/limits", ""))
	require.Equal(t, http.StatusOK, p.ask(p.public, "/v1/limits", key))
	require.Equal(t, http.StatusNotFound, p.ask(p.public, "/metrics", key))
	require.Equal(t, http.StatusOK, p.ask(p.admin, "/metrics", key))
	require.True(t, p.allows("m", "1,2"))

	before, err := os.ReadFile(p.config.Path("capper.yaml"))
	require.NoError(t, err)
	p.config.Swap(map[string]string{"capper.yaml": strings.Replace(string(before), "weekly: 3", "weekly: 4", 1)})
	testkit.Eventually(t, func() bool { return strings.Contains(p.log.String(), "configuration in force") }, "%s",
		p.log)
	p.stop()
}

// authority is a certificate that signs others, and itself.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature})
	return a
}

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: template.SerialNumber.String()}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, private
}

// pair is a certificate of loopback and its key, as a Secret of TLS has them, and the authority.
func (a *authority) pair() map[string]string {
	a.t.Helper()
	cert, private := a.sign(&x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(a.t, err)
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return map[string]string{"tls.crt": text("CERTIFICATE", cert.Raw), "tls.key": text("PRIVATE KEY", der),
		"ca.crt": text("CERTIFICATE", a.cert.Raw)}
}

// cluster is a Redis Cluster of one master that takes TLS alone, from callers with a certificate, and
// whose user capper has the rights of deploy/redis.acl.
func cluster(t *testing.T, pair *testkit.Mount) (address string, cli func(args ...string) string) {
	t.Helper()
	dir := t.TempDir()
	rights, err := os.ReadFile(filepath.Join(Root(), "deploy", "redis.acl"))
	require.NoError(t, err)
	users := strings.NewReplacer("user default on >CHANGE-ME", "user default on >operator", "CHANGE-ME",
		"first").Replace(string(rights))
	require.NoError(t, os.WriteFile(dir+"/users.acl", []byte(users), 0o600))
	port := fmt.Sprint(12000 + time.Now().UnixNano()%10000) // the bus has a port that is 10000 higher
	server := exec.Command("redis-server", "--port", "0", "--tls-port", port, "--tls-cluster", "yes", "--bind",
		"127.0.0.1", "--dir", dir, "--save", "",
		"--tls-cert-file", pair.Path("tls.crt"), "--tls-key-file", pair.Path("tls.key"), "--tls-ca-cert-file",
		pair.Path("ca.crt"), "--aclfile", dir+"/users.acl",
		"--cluster-enabled", "yes", "--appendonly", "yes", "--maxmemory-policy", "noeviction")
	log := new(testkit.Log)
	server.Stdout = log
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	cli = func(args ...string) string {
		all := append([]string{"-p", port, "--tls", "--cert", pair.Path("tls.crt"), "--key", pair.Path("tls.key"),
			"--cacert", pair.Path("ca.crt"), "--no-auth-warning", "-a", "operator"}, args...)
		out, _ := exec.Command("redis-cli", all...).CombinedOutput()
		return string(out)
	}
	testkit.Eventually(t, func() bool { return strings.Contains(cli("ping"), "PONG") }, "%s", log)
	require.Contains(t, cli("cluster", "addslotsrange", "0", "16383"), "OK")
	testkit.Eventually(t, func() bool { return strings.Contains(cli("cluster", "info"), "cluster_state:ok") })
	return "127.0.0.1:" + port, cli
}

// The pod over Redis runs on a cluster with TLS, by the authority, the client's certificate and the
// password that are mounted; a password that is changed there and in the Secret is taken without a restart.
func TestThePodRunsOverRedis(t *testing.T) {
	t.Parallel()
	pair := newAuthority(t).pair()
	secret := testkit.NewMount(t, pair)
	address, cli := cluster(t, secret)
	password := testkit.NewMount(t, map[string]string{"password": "first"})
	r := render(t, valuesFiles(t)["redis"], withKey(t, ", store: {redis: {addrs: ['"+address+
		"'], replica_acks: 0, create: true}}"))
	p := run(t, r, "stop_delay: 20s", "stop_delay: 0s",
		"/etc/capper-redis/password", password.Dir, "/etc/capper-redis/ca", secret.Dir, "/etc/capper-redis/client",
		secret.Dir)
	require.True(t, p.allows("m", "1,2"))

	require.Contains(t, cli("acl", "setuser", "capper", "resetpass", ">second"), "OK")
	password.Swap(map[string]string{"password": "second"})
	cli("client", "kill", "user", "capper")
	testkit.Eventually(t, func() bool { return p.allows("n", "3,4") }, "%s", p.log)
	p.stop()
}
