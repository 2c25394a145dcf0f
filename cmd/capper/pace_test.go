package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/testkit"
)

// serveSteady is a service with a slow and a quick pacer.
func serveSteady(t *testing.T) *process {
	t.Helper()
	return serve(t, configure(t, "{default: {daily: 1}}\npacers: {steady: {rate: 200/s}, quick: {rate: 1000000/s}}"))
}

// numbers writes a file of numbered lines.
func numbers(t *testing.T, n int) (file, text string) {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintln(&lines, i)
	}
	file = filepath.Join(t.TempDir(), "lines.txt")
	require.NoError(t, os.WriteFile(file, []byte(lines.String()), 0o600))
	return file, lines.String()
}

var goOn = regexp.MustCompile(`capper: (\d+) lines? w(?:as|ere) copied; go on with --skip (\d+)\n`)

// through is how many lines a command that was stopped says went through.
func through(t *testing.T, stderr *bytes.Buffer) int {
	t.Helper()
	m := goOn.FindStringSubmatch(stderr.String())
	require.NotNil(t, m, "%s", stderr)
	require.Equal(t, m[1], m[2])
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

// Lines come at the rate, and a run that is interrupted says where the next one goes on.
func TestPacedLinesComeAtTheRate(t *testing.T) {
	t.Parallel()
	p := serveSteady(t)
	const all = 1300 // as many as take far longer than a reader may be late with the signal
	file, text := numbers(t, all)
	var first, talk bytes.Buffer
	stopped := exec.Command("capper", "pace", "steady", file, "--url", p.url)
	stopped.Stderr = &talk
	out, err := stopped.StdoutPipe()
	require.NoError(t, err)
	start := time.Now() // before the first line: who reads that one late would find the others early
	require.NoError(t, stopped.Start())
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		fmt.Fprintln(&first, lines.Text())
		require.GreaterOrEqual(t, time.Since(start), time.Duration(n)*5*time.Millisecond, "line %d", n)
		if n == 100 {
			require.NoError(t, stopped.Process.Signal(os.Interrupt))
		}
	}
	require.EqualError(t, stopped.Wait(), "exit status 1")
	require.Contains(t, talk.String(), "capper: error: interrupted\n")
	n := through(t, &talk)
	require.Equal(t, strings.Count(first.String(), "\n"), n)

	start = time.Now()
	rest := exec.Command("capper", "pace", "steady", file, "--url", p.url, "--skip", strconv.Itoa(n))
	rest.Stderr = &talk
	second, err := rest.Output()
	require.NoError(t, err)
	require.Equal(t, text, first.String()+string(second))
	require.Greater(t, time.Since(start), time.Duration(all-n)*4*time.Millisecond)
	require.Contains(t, talk.String(), fmt.Sprintf("capper: %d lines were copied, %d of them in this run: ", all,
		all-n))
}

// TestAPaceTakesAPermitForEachLine checks that a command takes no permits in advance beyond its lines, which would be
// lost at a pacer without a rate.
func TestAPaceTakesAPermitForEachLine(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}}\npacers: {day: {limits: [{max: 100000, window: 24h}]}}"))
	service, err := client.New(client.Config{URL: p.url})
	require.NoError(t, err)
	used := func() int {
		state, err := service.Pacer(t.Context(), "day")
		require.NoError(t, err)
		return *state.Used
	}
	for _, n := range []int{1, 5, 50, 3000} {
		file, text := numbers(t, n)
		for _, args := range [][]string{{file}, {"-"}} {
			testkit.Steadily(t, 10, func() bool {
				before := used()
				pace := exec.Command("capper", append([]string{"pace", "day", "--url", p.url}, args...)...)
				pace.Stdin = strings.NewReader(text)
				out, err := pace.Output()
				require.NoError(t, err)
				require.Equal(t, text, string(out))
				return used()-before == n
			}, "the lines took more permits")
		}
	}
}

// A reader that ends leaves slots that go back. On a busy machine, all slots may have come before that.
func TestAPaceWhoseReaderHasGoneGivesBackItsPermits(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}}\npacers: {later: {rate: 20/s, max_wait: 24h}}"))
	file, _ := numbers(t, 1000)
	given := regexp.MustCompile(`capper: \d+ unused permits? (was|were) given back\n`)
	testkit.Eventually(t, func() bool { return given.MatchString(paceWithoutReader(t, p.url, file)) })
	service, err := client.New(client.Config{URL: p.url})
	require.NoError(t, err)
	state, err := service.Pacer(t.Context(), "later")
	require.NoError(t, err)
	require.LessOrEqual(t, time.Duration(state.QueueMS), 2*time.Second, "what no line has used is free")
}

// paceWithoutReader runs capper pace until its reader ends, and returns what the command says.
func paceWithoutReader(t *testing.T, url, file string) string {
	t.Helper()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	var talk bytes.Buffer
	left := exec.Command("capper", "pace", "later", file, "--url", url, "--max-wait", "12h")
	left.Stdout, left.Stderr = in, &talk
	require.NoError(t, left.Start())
	require.NoError(t, in.Close())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NotEmpty(t, line)
	require.NoError(t, out.Close())
	require.EqualError(t, left.Wait(), "exit status 1")
	return talk.String()
}

// Who is interrupted gives back the slots of the lines that did not go out.
func TestAnInterruptedPaceGivesBackItsPermits(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}}\npacers: {later: {rate: 1/h, max_wait: 24h}}"))
	file, _ := numbers(t, 10)
	service, err := client.New(client.Config{URL: p.url})
	require.NoError(t, err)
	queue := func() time.Duration {
		state, err := service.Pacer(t.Context(), "later")
		require.NoError(t, err)
		return time.Duration(state.QueueMS)
	}
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it, also for the commands of this test
		signals = append(signals, syscall.SIGHUP)
	}
	for _, by := range signals {
		var talk bytes.Buffer
		stopped := exec.Command("capper", "pace", "later", file, "--url", p.url, "--max-wait", "12h")
		stopped.Stderr = &talk
		require.NoError(t, stopped.Start())
		testkit.Eventually(t, func() bool { return queue() > 0 }, "the next line has a slot")
		require.NoError(t, stopped.Process.Signal(by))
		_ = stopped.Process.Signal(by) // the program timeout sends each signal twice
		require.EqualError(t, stopped.Wait(), "exit status 1")
		require.Regexp(t, `capper: (1 unused permit was|\d+ unused permits were) given back\n`, talk.String())
		require.Zero(t, queue())
	}
}

// The slots of a command that is killed go back when its lease ends. A command that is killed before its lease begins
// loses its slots, so the test has some attempts.
func TestAKilledPaceLosesItsPermits(t *testing.T) {
	t.Parallel()
	const attempts = 5
	pacers := ""
	for i := range attempts {
		pacers += fmt.Sprintf("  later%d: {rate: 1/h, max_wait: 24h}\n", i)
	}
	p := serve(t, configure(t, "{default: {daily: 1}}\npacers:\n"+pacers))
	file, _ := numbers(t, 10)
	service, err := client.New(client.Config{URL: p.url})
	require.NoError(t, err)
	for i := range attempts {
		name := fmt.Sprintf("later%d", i)
		var talk testkit.Log
		killed := exec.Command("capper", "pace", name, file, "--url", p.url, "--max-wait", "12h")
		killed.Stderr = &talk
		require.NoError(t, killed.Start())
		testkit.Eventually(t, func() bool { return strings.Contains(talk.String(), "waiting for "+name) })
		require.NoError(t, killed.Process.Kill())
		require.Error(t, killed.Wait())
		back, end := false, time.Now().Add(30*time.Second)
		testkit.Poll(func() bool {
			state, err := service.Pacer(t.Context(), name)
			require.NoError(t, err)
			back = state.QueueMS == 0
			return back || time.Now().After(end)
		})
		if back {
			return
		}
	}
	require.Fail(t, "no attempt gave its slot back")
}
