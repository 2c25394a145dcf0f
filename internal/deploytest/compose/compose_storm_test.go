//go:build storms

package compose

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// laptop runs the services of the file.
type laptop struct {
	t        *testing.T
	services map[string]*Service
	dir      string
	mapped   *strings.Replacer // from containers to the test
	prefix   string            // of addresses
}

func newLaptop(t *testing.T) *laptop {
	t.Helper()
	services, err := Load(file())
	require.NoError(t, err)
	l := &laptop{t: t, services: services, dir: t.TempDir()}
	l.prefix = fmt.Sprintf("127.%d.%d.", 1+rand.IntN(250), rand.IntN(250)) // all of it is loopback
	l.mapped = strings.NewReplacer("10.89.7.", l.prefix, "/var/lib/capper", l.dir+"/data",
		"/samples", filepath.Join(Root(), "testdata"), "/etc/capper", filepath.Join(l.dir, "etc"))
	return l
}

func (l *laptop) args(of []string) (mapped []string) {
	for _, arg := range of {
		mapped = append(mapped, l.mapped.Replace(arg))
	}
	return mapped
}

// run runs what a one-shot service runs, which must go well.
func (l *laptop) run(name string, args ...string) string {
	l.t.Helper()
	command := exec.Command(args[0], l.args(args[1:])...)
	command.Env = l.environment()
	out, err := command.CombinedOutput()
	require.NoError(l.t, err, "%s: %s", name, out)
	return string(out)
}

// environment is this process's, with what redis-cli finds in the container that makes the cluster.
func (l *laptop) environment() []string {
	l.t.Helper()
	password := l.services["cluster"].Environment["REDISCLI_AUTH"]
	require.NotNil(l.t, password)
	return append(os.Environ(), "REDISCLI_AUTH="+*password)
}

// start starts a command that runs until the end of the test.
func (l *laptop) start(environment []string, args ...string) *testkit.Log {
	l.t.Helper()
	log := new(testkit.Log)
	command := exec.Command(args[0], l.args(args[1:])...)
	command.Stdout, command.Stderr, command.Env = log, log, environment
	require.NoError(l.t, command.Start())
	l.t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	return log
}

// serve starts a Redis server as its container would: its command, with its address, which is the only one
// that a container has, and its volumes.
func (l *laptop) serve(service *Service) {
	l.t.Helper()
	args := slices.Clone(service.Command)
	for _, volume := range service.Volumes {
		if volume.Type == "bind" {
			for i := range args {
				args[i] = strings.Replace(args[i], volume.Target, volume.Source, 1)
			}
		}
	}
	address := l.mapped.Replace(service.Networks["redis"].Address)
	data := filepath.Join(l.dir, address)
	require.NoError(l.t, os.Mkdir(data, 0o755))
	l.start(nil, append(args, "--bind", address, "--bind-source-addr", address, "--dir", data, "--save", "")...)
	probe := service.HealthCheck.Test
	require.Equal(l.t, []string{"CMD", "redis-cli"}, probe[:2])
	testkit.Eventually(l.t, func() bool {
		command := exec.Command(probe[1], append([]string{"-h", address}, probe[2:]...)...)
		command.Env = l.environment()
		out, err := command.Output()
		return err == nil && strings.TrimSpace(string(out)) == "PONG"
	}, address)
}

// replicas are how many replicas each master of the cluster has; nil while one is not connected.
func (l *laptop) replicas() (counts []int) {
	l.t.Helper()
	masters := map[string]int{}
	nodes := l.run("nodes", "redis-cli", "-h", "10.89.7.11", "cluster", "nodes")
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		if fields[7] != "connected" {
			return nil
		}
		if strings.Contains(fields[2], "master") {
			masters[fields[0]] += 0
		} else {
			masters[fields[3]]++
		}
	}
	for _, n := range masters {
		counts = append(counts, n)
	}
	return counts
}

// What the file starts comes up: nine servers become a cluster of three masters with two replicas
// each, once; segments are published, twice without harm; and capper decides over them.
func TestTheLaptopComesUp(t *testing.T) {
	t.Parallel()
	l := newLaptop(t)
	for n := range 9 {
		l.serve(l.services[fmt.Sprintf("redis-%d", n+1)])
	}
	require.Equal(t, []string{"cluster-require-full-coverage", "no"},
		strings.Fields(l.run("settings", "redis-cli", "-h", "10.89.7.15", "config", "get",
			"cluster-require-full-coverage")))
	for range 2 { // as after a restart of all
		l.run("cluster", l.services["cluster"].Command...)
		testkit.Eventually(t, func() bool { return slices.Equal([]int{2, 2, 2}, l.replicas()) })
	}
	segments := l.services["segments"]
	require.Equal(t, []string{"segmentbuild"}, segments.Entrypoint)
	for range 2 {
		l.run("segments", append([]string{testkit.Program(t, "segmentbuild")}, segments.Command...)...)
	}
	url := l.serveCapper()

	call := func(method, path, body string) (status int, answer map[string]any) {
		request, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer laptop.only-for-this-laptop")
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, nil
		}
		defer response.Body.Close()
		require.NoError(t, json.NewDecoder(response.Body).Decode(&answer))
		return response.StatusCode, answer
	}
	testkit.Eventually(t, func() bool {
		status, _ := call(http.MethodGet, "/readyz",
			"")
		return status == http.StatusOK
	})
	testkit.Eventually(t, func() bool { // nine servers on a laptop may be late
		status, answer := call(http.MethodPost, "/v1/filter",
			`{"message_id": "welcome", "channel": "push", "user_ids": [900001, 900002]}`)
		require.Equal(t, http.StatusOK, status)
		require.Empty(t, answer["denied"])
		allowed, replayed := answer["allowed"].([]any), answer["replayed"].([]any)
		return len(allowed)+len(replayed) == 2
	})
	require.Eventually(t, func() bool { // it remembers for half a minute that one was
		_, answer := call(http.MethodGet, "/v1/status", "")
		store, _ := answer["store"].(map[string]any)
		return store["state"] == "ok"
	}, 2*time.Minute, 100*time.Millisecond)
}

// serveCapper starts the service with the folder of its configuration, and returns where it is.
func (l *laptop) serveCapper() (url string) {
	l.t.Helper()
	service := l.services["capper"]
	require.Equal(l.t, "127.0.0.1", service.Ports[0].HostIP, "nobody else calls a laptop")
	require.True(l.t, service.ReadOnly)
	require.Equal(l.t, "65532:65532", service.User)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(l.t, err)
	address := listener.Addr().String()
	require.NoError(l.t, listener.Close())
	text, err := os.ReadFile(filepath.Join(Root(), "deploy/compose/capper/capper.yaml"))
	require.NoError(l.t, err)
	require.Contains(l.t, string(text), fmt.Sprintf("0.0.0.0:%d", service.Ports[0].Target))
	require.NoError(l.t, os.MkdirAll(l.dir+"/etc", 0o755))
	config := strings.Replace(l.mapped.Replace(string(text)), "0.0.0.0:8080", address, 1)
	require.NoError(l.t, os.WriteFile(l.dir+"/etc/capper.yaml", []byte(config), 0o600))
	environment := []string{"PATH=/usr/bin"}
	for name, value := range service.Environment {
		environment = append(environment, name+"="+*value)
	}
	log := l.start(environment, append([]string{testkit.Program(l.t, "capper")}, service.Command...)...)
	testkit.Eventually(l.t, func() bool { return strings.Contains(log.String(), "what=api") }, "%s", log)
	return "http://" + address
}
