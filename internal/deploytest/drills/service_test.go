//go:build storms

package drills

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) {
	status := testcluster.Run(m)
	testkit.RemovePrograms()
	os.Exit(status)
}

// place is what instances of one fleet share.
type place struct {
	testing.TB
	dir       string
	addrs     []string
	store     string // the section of the configuration; "": Redis at addrs
	mustExist bool   // instances refuse a Redis that is empty or has lost something
}

// newPlace publishes segments.
func newPlace(t testing.TB, addrs []string) *place {
	p := &place{TB: t, dir: t.TempDir(), addrs: addrs}
	ids := filepath.Join(p.dir, "new.txt")
	require.NoError(t, os.WriteFile(ids, []byte("1\n2\n3\n"), 0o644))
	out, err := exec.Command(testkit.Program(t, "segmentbuild"), "build", "--to", filepath.Join(p.dir, "segments"),
		"--segment", "new="+ids).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return p
}

// instance is a capper on an address of its own.
type instance struct {
	testing.TB
	place *place
	addr  string
	cmd   *exec.Cmd
	log   *testkit.Log
	done  chan struct{}
}

// start starts an instance on the address with that program ("": the one of this tree) and waits until it is ready.
func (p *place) start(addr, program, more string) *instance {
	p.Helper()
	i := p.launch(addr, program, more)
	testkit.Eventually(p, func() bool { return i.ended() || ready("http://"+addr) }, "%s", i.log)
	require.False(p, i.ended(), "%s", i.log)
	return i
}

// configure writes the configuration of an instance on the address.
func (p *place) configure(addr, more string) (file string) {
	file = filepath.Join(p.dir, strings.NewReplacer(".", "-", ":", "-").Replace(addr)+".yaml")
	store := cmp.Or(p.store, fmt.Sprintf("{kind: redis, redis: {addrs: [%s], create: %t}}", strings.Join(p.addrs, ", "),
		!p.mustExist))
	require.NoError(p, os.WriteFile(file, fmt.Appendf(nil, `server: {listen: %q, stop_delay: 5s, call_timeout: 30s}
segments: {source: %[2]s/segments, cache_dir: %[2]s/cache}
store: %[3]s
channels: {push: 1}
limits: {default: {daily: %[4]d}}
%[5]s`, addr, p.dir, store, most, more), 0o644))
	return file
}

// launch starts an instance and waits for nothing.
func (p *place) launch(addr, program, more string) *instance {
	p.Helper()
	file := p.configure(addr, more)
	i := &instance{TB: p.TB, place: p, addr: addr, log: new(testkit.Log), done: make(chan struct{})}
	i.cmd = exec.Command(cmp.Or(program, testkit.Program(p, "capper")), "serve", "--config", file)
	stderr, err := i.cmd.StderrPipe()
	require.NoError(p, err)
	require.NoError(p, i.cmd.Start())
	go i.follow(stderr)
	p.Cleanup(func() { i.signal(syscall.SIGKILL) })
	return i
}

func (i *instance) follow(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		fmt.Fprintln(i.log, lines.Text())
	}
	i.cmd.Wait()
	close(i.done)
}

func (i *instance) ended() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// signal sends the signal and waits for the end.
func (i *instance) signal(s syscall.Signal) {
	if !i.ended() {
		i.cmd.Process.Signal(s)
		<-i.done
	}
}

// stop ends it as an upgrade does, and wants that it ended well.
func (i *instance) stop() {
	i.Helper()
	i.signal(syscall.SIGTERM)
	require.Zero(i, i.cmd.ProcessState.ExitCode(), "%s", i.log)
}

func ready(url string) bool {
	response, err := http.Get(url + "/readyz")
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// freeAddr is a loopback address that nobody listened on a moment ago.
func freeAddr(t testing.TB) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// balance starts the haproxy of deploy/haproxy before both addresses.
func balance(t testing.TB, one, two string) (url string) {
	t.Helper()
	out, err := exec.Command("bash", "../../../scripts/haproxy.sh").CombinedOutput()
	require.NoError(t, err, "%s", out)
	shipped, err := os.ReadFile("../../../deploy/haproxy/haproxy.cfg")
	require.NoError(t, err)
	const connect = "  timeout connect 2s\n"
	require.Contains(t, string(shipped), connect)
	file := filepath.Join(t.TempDir(), "haproxy.cfg") // in which an instance that stands still for a moment is not down
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(shipped), connect, connect+
		"  timeout check 10s\n", 1)), 0o644))
	bind, log := freeAddr(t), new(testkit.Log)
	cmd := exec.Command("haproxy", "-db", "-f", file)
	cmd.Env = append(os.Environ(), "CAPPER_BIND="+bind, "CAPPER_ONE="+one, "CAPPER_TWO="+two)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	testkit.Eventually(t, func() bool { return ready("http://" + bind) }, "%s", log)
	return "http://" + bind
}
