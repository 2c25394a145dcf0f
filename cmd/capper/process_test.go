package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/app"
	"capper/internal/config"
	"capper/internal/testkit"
)

// process is a running `capper serve`.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	log    *testkit.Log
	exited chan struct{}
}

var listening = regexp.MustCompile(`what=api address=(\S+)`)

// serve starts the real program with the configuration and waits until it is
// ready. It is killed at the end of the test when it still runs.
func serve(t *testing.T, file string, env ...string) *process {
	t.Helper()
	p := launch(t, file, env...)
	testkit.Eventually(t, func() bool { return p.hasExited() || p.ready() }, "%s", p.log)
	require.False(t, p.hasExited(), "%s", p.log)
	return p
}

// launch starts the program and waits for nothing.
func launch(t *testing.T, file string, env ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command("capper", "serve", "--config", file), log: new(testkit.Log),
		exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	stderr, err := p.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { p.signal(syscall.SIGKILL) })
	go p.follow(stderr)
	return p
}

// inside runs the service in this process, on the test's clock, until the test ends it. Of a process it
// has the address and the log.
func inside(t *testing.T, file string, clock func() time.Time) (p *process, end func()) {
	t.Helper()
	watcher, err := config.NewWatcher(file, clock)
	require.NoError(t, err)
	p = &process{t: t, log: new(testkit.Log)}
	service, err := app.Start(t.Context(), app.Config{Watcher: watcher, Log: p.log, Clock: clock})
	require.NoError(t, err, "%s", p.log)
	p.url = "http://" + service.Addr().String()
	end = sync.OnceFunc(func() { require.NoError(t, service.Stop()) })
	t.Cleanup(end)
	return p, end
}

func (p *process) follow(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() { // whole lines: who reads an address sees all of it
		fmt.Fprintln(p.log, lines.Text())
	}
	p.cmd.Wait()
	close(p.exited)
}

// logs waits for a line of the log, which comes through a pipe.
func (p *process) logs(line string) {
	p.t.Helper()
	testkit.Eventually(p.t, func() bool { return regexp.MustCompile(line).MatchString(p.log.String()) }, "%s: %s", line,
		p.log)
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *process) ready() (ready bool) {
	p.url, ready = readyURL(p.log.String())
	return ready
}

// readyURL is where the service that writes the log listens, and whether it is ready.
func readyURL(log string) (url string, ready bool) {
	m := listening.FindStringSubmatch(log)
	if m == nil {
		return "", false
	}
	url = "http://" + m[1]
	response, err := http.Get(url + "/readyz")
	if err != nil {
		return url, false
	}
	response.Body.Close()
	return url, response.StatusCode == http.StatusOK
}

// signal sends the signal and, when it ends the process, waits for its end.
func (p *process) signal(s syscall.Signal) {
	if !p.hasExited() {
		p.cmd.Process.Signal(s)
		<-p.exited
	}
}

// answer is a filter answer as a caller sees it.
type answer struct {
	Allowed  []uint32 `json:"allowed"`
	Replayed []uint32 `json:"replayed"`
	Denied   []struct {
		UserID  uint32    `json:"user_id"`
		Segment string    `json:"segment"`
		Limit   string    `json:"limit"`
		RetryAt time.Time `json:"retry_at"`
	} `json:"denied"`
	Unavailable   []uint32 `json:"unavailable"`
	Generation    string   `json:"generation"`
	ConfigVersion string   `json:"config_version"`
}

func (p *process) filter(message string, users ...uint32) (got answer, err error) {
	err = post(p.url+"/v1/filter", map[string]any{"message_id": message, "channel": "push", "user_ids": users}, &got)
	return got, err
}

// post sends a request and reads its answer, which has to be a 200.
func post(url string, request, got any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return json.Unmarshal(text, got)
}

// get reads a JSON answer.
func (p *process) get(path string) (got map[string]any) {
	p.t.Helper()
	response, err := http.Get(p.url + path)
	require.NoError(p.t, err)
	defer response.Body.Close()
	require.NoError(p.t, json.NewDecoder(response.Body).Decode(&got))
	return got
}

// publish runs the real segmentbuild over segments of id ranges, such as
// "new=1-1000", and puts them live in the place.
func publish(t *testing.T, place string, ranges ...string) {
	t.Helper()
	args := []string{"build", "--to", place, "--force", "--reason", "test"}
	for _, r := range ranges {
		var name string
		var low, high uint32
		_, err := fmt.Sscanf(strings.NewReplacer("=", " ", "-", " ").Replace(r), "%s %d %d", &name, &low, &high)
		require.NoError(t, err)
		var ids strings.Builder
		for id := low; id <= high; id++ {
			fmt.Fprintln(&ids, id)
		}
		file := filepath.Join(t.TempDir(), name+".txt")
		require.NoError(t, os.WriteFile(file, []byte(ids.String()), 0o600))
		args = append(args, "--segment", name+"="+file)
	}
	out, err := exec.Command(segmentbuild(t), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func segmentbuild(t *testing.T) string {
	t.Helper()
	return testkit.Program(t, "segmentbuild")
}

// configure writes a configuration for a directory of segments and the
// embedded store, with more YAML behind it.
func configure(t *testing.T, limits string) (file string) {
	t.Helper()
	dir := t.TempDir()
	publish(t, filepath.Join(dir, "segments"), "new=1-1000", "active=1001-2000")
	file = filepath.Join(dir, "capper.yaml")
	write(t, file, embedded(dir, limits))
	return file
}

func embedded(dir, limits string) string {
	return fmt.Sprintf(`server: {listen: "127.0.0.1:0", stop_delay: 0s, call_timeout: 30s}
segments: {source: %[1]s/segments, cache_dir: %[1]s/cache, refresh: 100ms}
store: {embedded: {path: %[1]s/log.db}}
channels: {push: 1}
limits: %[2]s
`, dir, limits)
}

func write(t *testing.T, file, content string) {
	t.Helper()
	temporary := file + ".new"
	require.NoError(t, os.WriteFile(temporary, []byte(content), 0o600))
	require.NoError(t, os.Rename(temporary, file))
}

// counter reads a sample of /metrics; 0 when there is none.
func counter(t *testing.T, p *process, sample string) int64 {
	t.Helper()
	response, err := http.Get(p.url + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), sample+" "); ok {
			number, err := strconv.ParseFloat(value, 64)
			require.NoError(t, err)
			return int64(number)
		}
	}
	require.NoError(t, lines.Err())
	return 0
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}
