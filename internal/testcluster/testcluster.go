// Package testcluster starts real Redis servers for tests. The tests of a package share one Redis Cluster. A test that
// stops servers starts a separate cluster. The script scripts/cluster.sh starts all Redis servers of the tests on free
// loopback ports. If the test process dies, this script also stops the servers.
package testcluster

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"capper/internal/testkit"
)

// Variable is the name of the environment variable with the addresses of a running Redis Cluster that all tests share.
const Variable = "CAPPER_TEST_REDIS"

// ServerVariable is the name of the environment variable with the path of the Redis server binary. With this variable,
// CAPPER_TEST_REDIS_SERVER, tests can use another Redis-compatible server than the system's redis-server (see
// scripts/engines.sh).
const ServerVariable = "CAPPER_TEST_REDIS_SERVER"

// Server returns the path of the binary that runs the Redis servers.
func Server() string { return cmp.Or(os.Getenv(ServerVariable), "redis-server") }

// Options holds the settings of a Redis Cluster or a standalone Redis server for tests. The zero value means a healthy
// cluster.
type Options struct {
	Masters     int           // number of masters; 0: 3; a standalone server ignores this number
	Replicas    int           // number of replicas of each master; 0: no replicas
	NodeTimeout time.Duration // 0: 2 s
	Password    string        // password of the servers; "": no password
	// ACL is the path of the servers' ACL file. In this file, the password "capper" replaces the word "CHANGE-ME". The
	// value "" means the line for the user capper in deploy/redis.acl.
	ACL  string
	User string // user that creates the cluster and replicates data; "": the user default
	Host string // address on which the nodes listen; "": 127.0.0.1
	// TLS is a directory with ca.crt, server.crt and server.key. If TLS is set, the nodes accept only TLS connections,
	// even from each other.
	TLS      string
	Settings []string // additional lines of redis.conf
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

// A Cluster is a group of real Redis servers that this process started with the script scripts/cluster.sh.
type Cluster struct {
	Addrs []string // addresses of all nodes, masters first
	dir   string
}

var shared struct {
	once    sync.Once
	cluster *Cluster
	err     error
}

// Run runs the tests of a package and returns the exit status. If a test has started the shared Redis Cluster, Run
// stops this cluster at the end.
func Run(m *testing.M) int {
	status := m.Run()
	if shared.cluster != nil {
		shared.cluster.stop()
	}
	return status
}

// The function Shared returns the addresses of the Redis Cluster that the tests of a package share. If no environment
// variable names a running cluster, the first call of Shared starts a cluster with 3 masters and 3 replicas. Tests must
// not stop servers of the shared cluster. The shared cluster has long time-outs, so that a busy machine causes no
// failover. The function Run stops the shared cluster.
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

// Start starts a Redis Cluster for one test, and stops the cluster when the test ends.
func Start(t testing.TB, options Options) *Cluster { return start(t, "up", options) }

// The function Single starts a standalone Redis server for one test. The field Addrs of the returned Cluster contains
// the address of the server, followed by the addresses of its replicas.
func Single(t testing.TB, options Options) *Cluster { return start(t, "single", options) }

// The function Spare starts servers in cluster mode that do not belong to a cluster yet. Options.Masters is the number
// of these servers.
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

// The method "stop" stops the servers at the end of a test, and ignores errors. If servers still run when the test
// process ends, the script scripts/cluster.sh stops these servers.
func (c *Cluster) stop() {
	_ = script("down", c.dir)
	_ = os.RemoveAll(filepath.Dir(c.dir))
}

func script(args ...string) error {
	path := filepath.Join(testkit.Root(), "scripts", "cluster.sh")
	out, err := exec.Command("bash", append([]string{path}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cluster.sh %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// Kill kills a Redis node with SIGKILL and waits until the node's port is closed.
func (c *Cluster) Kill(addr string) error {
	return c.end(addr, syscall.SIGKILL)
}

// The method Shut stops a Redis node with SIGTERM, like an init system, and waits until the node's port is closed.
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
	return fmt.Errorf("node %s: the port is still open 30 s after the signal %v", addr, sig)
}

// Pause suspends a Redis node with SIGSTOP. The connections to a suspended node stay open, but the node sends no
// responses.
func (c *Cluster) Pause(addr string) error { return c.signal(addr, syscall.SIGSTOP) }

// Resume continues a Redis node that Pause has suspended.
func (c *Cluster) Resume(addr string) error { return c.signal(addr, syscall.SIGCONT) }

// Data returns the directory that contains the data of a Redis node.
func (c *Cluster) Data(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return filepath.Join(c.dir, port)
}

// Restart starts a Redis node that Kill or Shut has stopped. The node loads its earlier data.
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
