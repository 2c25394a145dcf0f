//go:build storms

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// A writer that does not write holds nothing up: a signal ends the command.
func TestAPaceThatHangsIsStopped(t *testing.T) {
	t.Parallel()
	p := serveSteady(t)
	var silent bytes.Buffer
	empty := exec.Command("capper", "pace", "quick", "--url", p.url)
	in, err := empty.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	empty.Stderr = &silent
	out, err := empty.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, empty.Start())
	_, err = io.WriteString(in, "one\nhalf of ano")
	require.NoError(t, err)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "one\n", line)
	require.NoError(t, empty.Process.Signal(syscall.SIGTERM))
	require.EqualError(t, empty.Wait(), "exit status 1")
	require.Equal(t, 1, through(t, &silent))
}

// A service that is killed under way, and comes back, costs no line.
func TestAPaceOutlivesTheService(t *testing.T) {
	t.Parallel()
	config := configure(t, "{default: {daily: 1}}\npacers: {steady: {rate: 200/s}}")
	p := serve(t, config)
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	write(t, config, strings.Replace(string(text), "127.0.0.1:0", strings.TrimPrefix(p.url, "http://"), 1))
	file, want := numbers(t, 1300)
	talk := new(testkit.Log)
	pace := exec.Command("capper", "pace", "steady", file, "--url", p.url)
	pace.Stderr = talk
	out, err := pace.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, pace.Start())
	var got bytes.Buffer
	under, read := make(chan struct{}), make(chan struct{})
	go func() { // reads on while the service is away: the command asks for permits when its lines were taken
		defer close(read)
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			fmt.Fprintln(&got, lines.Text())
			if n == 100 {
				close(under)
			}
		}
	}()
	<-under
	p.signal(syscall.SIGKILL)
	testkit.Eventually(t, func() bool { return strings.Contains(talk.String(), "no new permits") }, talk)
	launch(t, config)
	<-read
	require.NoError(t, pace.Wait(), "%s", talk)
	require.Equal(t, want, got.String())
	// A slow answer before or after the death of the service may add notices of its own.
	require.Equal(t, 1, strings.Count(talk.String(), "capper: no new permits, retrying: Post "), "%s", talk)
	began := strings.Count(talk.String(), "capper: no new permits, retrying: ")
	require.Equal(t, began, strings.Count(talk.String(), "capper: permits are available again\n"), "%s", talk)
}
