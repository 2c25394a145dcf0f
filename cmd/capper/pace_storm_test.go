//go:build storms

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// A reader that does not read and a writer that does not write hold nothing up: a
// signal ends the command, and the count is exact.
func TestAPaceThatHangsIsStopped(t *testing.T) {
	t.Parallel()
	p := serveSteady(t)
	file, text := numbers(t, 100_000)
	var talk bytes.Buffer
	full := exec.Command("capper", "pace", "quick", file, "--url", p.url)
	full.Stderr = &talk
	out, err := full.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, full.Start())
	begun := make([]byte, 1)
	_, err = io.ReadFull(out, begun)
	require.NoError(t, err)
	// A page of the pipe holds whole writes, so a full pipe of 64 KiB may hold little more than half of that.
	testkit.Eventually(t, func() bool { return waiting(t, out) > 32<<10 }, "the pipe takes no more")
	require.NoError(t, full.Process.Signal(os.Interrupt))
	state, err := full.Process.Wait()
	require.NoError(t, err)
	require.Equal(t, 1, state.ExitCode())
	got, err := io.ReadAll(out)
	require.NoError(t, err)
	full.Wait()
	got = append(begun, got...)
	require.True(t, strings.HasPrefix(text, string(got)))
	require.Equal(t, bytes.Count(got, []byte{'\n'}), through(t, &talk))

	var silent bytes.Buffer
	empty := exec.Command("capper", "pace", "quick", "--url", p.url)
	in, err := empty.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	empty.Stderr = &silent
	out, err = empty.StdoutPipe()
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

// waiting is how many bytes of the pipe have not been read.
func waiting(t *testing.T, pipe io.Reader) int {
	raw, err := pipe.(*os.File).SyscallConn()
	require.NoError(t, err)
	question := map[string]uintptr{"linux": 0x541b, "darwin": 0x4004667f}[runtime.GOOS] // FIONREAD
	var bytes int32
	var fault syscall.Errno
	require.NoError(t, raw.Control(func(fd uintptr) {
		_, _, fault = syscall.Syscall(syscall.SYS_IOCTL, fd, question, uintptr(unsafe.Pointer(&bytes)))
	}))
	require.Zero(t, fault)
	return int(bytes)
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
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		fmt.Fprintln(&got, lines.Text())
		if n == 100 {
			p.signal(syscall.SIGKILL)
			testkit.Eventually(t, func() bool { return strings.Contains(talk.String(), "no permits yet") }, talk)
			launch(t, config)
		}
	}
	require.NoError(t, pace.Wait(), "%s", talk)
	require.Equal(t, want, got.String())
	require.Equal(t, 1, strings.Count(talk.String(), "capper: no permits yet, retrying: "), "%s", talk)
	require.Equal(t, 1, strings.Count(talk.String(), "capper: permits are available again\n"), "%s", talk)
}
