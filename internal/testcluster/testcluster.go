// Package testcluster starts real Redis servers for tests: one cluster that the tests of a package share, and separate
// clusters for tests that break servers. The script scripts/cluster.sh starts all servers on free loopback ports. It
// also stops them if the test process dies.
package testcluster

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Variable names the environment variable with the addresses of a cluster that is already running.
const Variable = "CAPPER_TEST_REDIS"

// ServerVariable names the environment variable with the server binary, for other engines than the system's
// redis-server (see scripts/engines.sh).
const ServerVariable = "CAPPER_TEST_REDIS_SERVER"

// Server returns the binary of the Redis servers.
func Server() string { return cmp.Or(os.Getenv(ServerVariable), "redis-server") }

// Options holds the settings of a cluster or server. The zero value is a healthy default.
type Options struct {
	Masters     int           // 0: 3; a standalone server ignores it
	Replicas    int           // replicas of each master; 0: none
	NodeTimeout time.Duration // 0: 2 s
	Password    string        // "": none
	// ACL is the path of the servers' ACL file, in which CHANGE-ME becomes capper; "" means the line for capper in
	// deploy/redis.acl.
	ACL  string
	User string // user that creates the cluster and feeds replicas; "": the user default
	Host string // address on which the nodes listen; "": 127.0.0.1
	// TLS is a directory with ca.crt, server.crt and server.key. With it the nodes accept only TLS, also between each
	// other.
	TLS      string
	Settings []string // more lines of redis.conf
}

func (o *Options) args() []string {
	args := []string{"--replicas", strconv.Itoa(o.Replicas), "--owner", strconv.Itoa(os.Getpid())}
	if o.Masters > 0 {
		args = append(args, "--masters", strconv.Itoa(o.Masters))
	}
	if o.NodeTimeout > 0 {
		args = append(args, "--node-timeout", strconv.FormatInt(o.NodeTimeout.Milliseconds(), 10))
	}
	if o.Password != "" {
		args = append(args, "--password", o.Password)
	}
	if o.ACL != "" {
		args = append(args, "--acl", o.ACL)
	}
	if o.User != "" {
		args = append(args, "--user", o.User)
	}
	if o.Host != "" {
		args = append(args, "--host", o.Host)
	}
	if o.TLS != "" {
		args = append(args, "--tls", o.TLS)
	}
	for _, line := range o.Settings {
		args = append(args, "--set", line)
	}
	return args
}

// Cluster is a set of real Redis servers that this process started. The script scripts/cluster.sh starts them on free
// loopback ports, and also stops them if the test process dies.
type Cluster struct {
	Addrs []string // masters first
	dir   string
}

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Run runs the tests of a package and stops the shared cluster if one was started. Run returns the exit status.
func Run(m *testing.M) int {
	status := m.Run()
	if shared.cluster != nil {
		shared.cluster.stop()
	}
	return status
}

// Shared returns the addresses of the cluster that a package's tests share: the one in the environment, or a cluster
// with 3 masters and 3 replicas that the first call starts. Tests must not break the shared cluster. The time-outs of
// the shared cluster are long, so that a busy machine causes no failover. Run stops the cluster.
func Shared(t testing.TB) []string {
	t.Helper()
	if addrs := os.Getenv(Variable); addrs != "" {
		return strings.Split(addrs, ",")
	}
	shared.once.Do(func() {
		shared.cluster,
			shared.err = open("up", Options{Replicas: 1, NodeTimeout: 15 * time.Second})
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster.Addrs
}

// Start starts a cluster for one test and stops it when the test ends.
func Start(t testing.TB, options Options) *Cluster { return start(t, "up", options) }

// Single starts a standalone server for one test. Its replicas follow it in Addrs.
func Single(t testing.TB, options Options) *Cluster { return start(t, "single", options) }

// Spare starts servers in cluster mode that belong to no cluster yet. Options.Masters is their number.
func Spare(t testing.TB, options Options) *Cluster { return start(t, "spare", options) }

func start(t testing.TB, verb string, options Options) *Cluster {
	t.Helper()
	c, err := open(verb, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	return c
}

func open(verb string, options Options) (*Cluster, error) {
	parent, err := os.MkdirTemp("", "capper-redis-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: filepath.Join(parent, "nodes")}
	if err := script(append([]string{verb, c.dir}, options.args()...)...); err != nil {
		return nil, errors.Join(err, os.RemoveAll(parent))
	}
	env, err := os.ReadFile(filepath.Join(c.dir, "env"))
	if err != nil {
		return nil, err
	}
	_, addrs, _ := strings.Cut(strings.TrimSpace(string(env)), "=")
	c.Addrs = strings.Split(addrs, ",")
	return c, nil
}

// stop stops the servers at the end of a test. The script stops servers that remain.
func (c *Cluster) stop() {
	_ = script("down", c.dir)
	_ = os.RemoveAll(filepath.Dir(c.dir))
}

func script(args ...string) error {
	_, file, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(file), "..", "..", "scripts", "cluster.sh")
	out, err := exec.Command("bash", append([]string{path}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cluster.sh %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// Kill kills a node with SIGKILL and waits until its port is closed.
func (c *Cluster) Kill(addr string) error {
	return c.end(addr, syscall.SIGKILL)
}

// Shut stops a node with SIGTERM, like an init system, and waits until its port is closed.
func (c *Cluster) Shut(addr string) error { return c.end(addr, syscall.SIGTERM) }

func (c *Cluster) end(addr string, sig syscall.Signal) error {
	if err := c.signal(addr, sig); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return nil
		}
		_ = conn.Close()
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("node %s: its port is still open 30 s after %v", addr, sig)
}

// Pause stops a node with SIGSTOP: its connections stay open but get no answers.
func (c *Cluster) Pause(addr string) error { return c.signal(addr, syscall.SIGSTOP) }

// Resume continues a paused node.
func (c *Cluster) Resume(addr string) error { return c.signal(addr, syscall.SIGCONT) }

// Data returns the directory with a node's data.
func (c *Cluster) Data(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return filepath.Join(c.dir, port)
}

// Restart starts a killed node again with its data.
func (c *Cluster) Restart(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	return script("start", c.dir, port)
}

func (c *Cluster) signal(addr string, sig syscall.Signal) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(c.dir, port+".pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, sig)
}
