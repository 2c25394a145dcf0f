package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/internal/testkit"
)

// servePiped is a service with pacers for readers that hang. The limits of 3 s and more show when permits are old.
func servePiped(t *testing.T) *process {
	t.Helper()
	return serve(t, configure(t, "{default: {daily: 1}}\npacers:\n"+
		"  steady: {limits: [{max: 100000, window: 3s}], rate: 250/s}\n"+
		"  window: {limits: [{max: 100, window: 1s}, {max: 100000, window: 3s}]}\n"+
		"  quick: {rate: 1000000/s}"))
}

// waiting is how many bytes of the pipe have not been read.
func waiting(t *testing.T, pipe io.Reader) (n int) {
	t.Helper()
	raw, err := pipe.(*os.File).SyscallConn()
	require.NoError(t, err)
	var bytes int32
	var fault syscall.Errno
	require.NoError(t, raw.Control(func(fd uintptr) {
		_, _, fault = syscall.Syscall(syscall.SYS_IOCTL, fd, 0x541b, uintptr(unsafe.Pointer(&bytes))) // FIONREAD
	}))
	require.Zero(t, fault)
	return int(bytes)
}

// paced is a running `capper pace` whose output the test reads.
type paced struct {
	*exec.Cmd
	out  io.ReadCloser
	talk *testkit.Log
}

func pace(t *testing.T, p *process, args ...string) *paced {
	t.Helper()
	c := &paced{
		Cmd:  exec.Command("capper", append([]string{"pace", "--url", p.url}, args...)...),
		talk: new(testkit.Log),
	}
	c.Stderr = c.talk
	var err error
	c.out, err = c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	return c
}

// old waits until no permit of the pacer is younger than its longest window.
func old(t *testing.T, p *process, pacer string) {
	t.Helper()
	c, err := client.New(client.Config{URL: p.url})
	require.NoError(t, err)
	testkit.Eventually(t, func() bool {
		state, err := c.Pacer(t.Context(), pacer)
		return err == nil && *state.Limits[len(state.Limits)-1].Used == 0
	}, "permits of %s are old", pacer)
}

// A sender that hangs finds next to nothing in the pipe afterwards, and gets the rest at the pace.
func TestAReaderThatHungGetsNoBurst(t *testing.T) {
	t.Parallel()
	p := servePiped(t)
	file, text := numbers(t, 1000)
	for pacer, most := range map[string]float64{"steady": 250 * 1.1, "window": 200} {
		t.Run(pacer, func(t *testing.T) {
			t.Parallel()
			c := pace(t, p, pacer, file)
			lines := bufio.NewScanner(c.out)
			var got strings.Builder
			var at []time.Time
			for n := 0; lines.Scan(); n++ {
				if n == 300 {
					old(t, p, pacer)
				}
				at = append(at, time.Now())
				fmt.Fprintln(&got, lines.Text())
			}
			require.NoError(t, c.Wait(), "%s", c.talk)
			require.Equal(t, text, got.String())
			busiest, first := 0, 0
			var longest time.Duration // the longest pause between two lines, without the one in which the reader hung
			for i := range at {
				if i > 0 && i != 300 {
					longest = max(longest, at[i].Sub(at[i-1]))
				}
				for at[i].Sub(at[first]) >= time.Second {
					first++
				}
				busiest = max(busiest, i-first+1)
			}
			t.Logf("%s: %d lines in the busiest second, longest pause %v", pacer, busiest, longest)
			// On a busy machine, the lines of a pause come late, which is right for pauses of less than a second.
			require.LessOrEqual(t, float64(busiest), most*(1+min(longest, time.Second).Seconds()))
			require.Contains(t, c.talk.String(), "capper: 1000 lines were copied: ")
		})
	}
}

// A sender that takes a line and dies has taken a line, and the next one gets the rest.
func TestALineThatNobodyReadWasNotCopied(t *testing.T) {
	t.Parallel()
	p := servePiped(t)
	file, text := numbers(t, 1500)
	for pacer, taken := range map[string]int{"quick": 1, "steady": 3} {
		t.Run(pacer, func(t *testing.T) {
			t.Parallel()
			c := pace(t, p, pacer, file)
			for range taken {
				line := make([]byte, 2) // a digit and a line break: nothing of the next line
				_, err := io.ReadFull(c.out, line)
				require.NoError(t, err)
			}
			testkit.Eventually(t, func() bool { return waiting(t, c.out) > 0 }, "the next lines come")
			require.NoError(t, c.out.Close())
			require.EqualError(t, c.Wait(), "exit status 1")
			said := fmt.Sprintf("capper: %d lines were copied; go on with --skip %[1]d\n", taken)
			if taken == 1 {
				said = "capper: 1 line was copied; go on with --skip 1\n"
			}
			require.Contains(t, c.talk.String(), said)
			require.Contains(t, c.talk.String(), "the program that reads the output has ended")
			require.NotContains(t, c.talk.String(), "unread")

			c = pace(t, p, pacer, file, "--skip", strconv.Itoa(taken))
			rest, err := io.ReadAll(c.out)
			require.NoError(t, err)
			require.NoError(t, c.Wait(), "%s", c.talk)
			require.Equal(t, text[2*taken:], string(rest), "nothing is lost, and nothing comes twice")
		})
	}
}

// Who is interrupted while the reader hangs says what was read, and what may still be read.
func TestLinesThatMayStillBeRead(t *testing.T) {
	t.Parallel()
	p := servePiped(t)
	file, text := numbers(t, 100_000)
	for _, flags := range [][]string{nil, {"--json"}} {
		c := pace(t, p, append(flags, "quick", file)...)
		first := make([]byte, 20) // ten lines
		_, err := io.ReadFull(c.out, first)
		require.NoError(t, err)
		testkit.Eventually(t, func() bool { return waiting(t, c.out) > 0 }, "the next lines come")
		require.NoError(t, c.Process.Signal(os.Interrupt))
		state, err := c.Process.Wait()
		require.NoError(t, err)
		require.Equal(t, 1, state.ExitCode())
		rest, err := io.ReadAll(c.out)
		require.NoError(t, err)
		_ = c.Wait()
		require.True(t, strings.HasPrefix(text, string(first)+string(rest)))
		unread := bytes.Count(rest, []byte{'\n'})
		require.Positive(t, unread)
		require.Less(t, len(rest), 8<<10)
		if flags == nil {
			require.Contains(t, c.talk.String(), "capper: 10 lines were copied; go on with --skip 10\n")
			require.Regexp(t, fmt.Sprintf(`capper: %d more lines? (is|are) unread in the pipe: if the reader takes the `+
				`rest, go on with --skip %d\n`, unread, 10+unread), c.talk.String())
			continue
		}
		require.Regexp(t, fmt.Sprintf(`"lines": 10,\s+"skip": 10,\s+"unread": %d,`, unread), c.talk.String())
	}
}

// A pipe that held more than a page before is read all the same, and gets its size back.
func TestAPipeThatIsNotEmpty(t *testing.T) {
	t.Parallel()
	p := servePiped(t)
	file, text := numbers(t, 3000)
	before := strings.Repeat("x", 20_000) + "\n"
	sh := exec.Command("sh", "-c",
		"head -c 20000 /dev/zero | tr '\\0' x; echo; capper pace quick "+file+" --url "+p.url)
	var talk bytes.Buffer
	sh.Stderr = &talk
	out, err := sh.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, sh.Start())
	testkit.Eventually(t, func() bool { return waiting(t, out) > len(before) }, "the first line comes")
	got, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, sh.Wait())
	require.Equal(t, before+text, string(got))
	require.Contains(t, talk.String(), "capper: 3000 lines were copied: ")
}

// Lines longer than the pipe are whole for who counts them.
func TestALongLineInAPipe(t *testing.T) {
	t.Parallel()
	p := servePiped(t)
	long := strings.Repeat("y", 50_000) + "\n"
	text := "a\n" + long + "b\n"
	file := filepath.Join(t.TempDir(), "long.txt")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c := pace(t, p, "quick", file)
	begun := make([]byte, 10_000)
	_, err := io.ReadFull(c.out, begun)
	require.NoError(t, err)
	require.NoError(t, c.out.Close())
	require.EqualError(t, c.Wait(), "exit status 1")
	require.Contains(t, c.talk.String(), "capper: 1 line was copied; go on with --skip 1\n")

	c = pace(t, p, "quick", file)
	all, err := io.ReadAll(c.out)
	require.NoError(t, err)
	require.NoError(t, c.Wait())
	require.Equal(t, text, string(all))
	require.Contains(t, c.talk.String(), "capper: 3 lines were copied: ")
}
