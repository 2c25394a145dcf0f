package testkit

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Patience is the maximum time for which a test waits for an expected event. Patience is long, because test machines
// may be slow.
const Patience = 2 * time.Minute

// The function Eventually calls the function "condition" repeatedly until the function returns true. If the function
// does not return true within Patience, Eventually fails the test. The arguments in "message" have the form of the
// message arguments in testify's assertions.
func Eventually(t testing.TB, condition func() bool, message ...any) {
	t.Helper()
	require.Eventually(t, condition, Patience, 10*time.Millisecond, message...)
}

// Poll calls the function "condition" repeatedly until the function returns true. If the function does not return true
// within Patience, Poll returns false. Poll is for code that has no testing.TB.
func Poll(condition func() bool) bool {
	for deadline := time.Now().Add(Patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// FailsWith calls a function repeatedly until the error contains the text in the argument "why". Every call must return
// an error. On a busy machine, the first errors may be time-outs.
func FailsWith(t testing.TB, why string, call func() error) {
	t.Helper()
	var err error
	said := Poll(func() bool {
		err = call()
		require.Error(t, err)
		return strings.Contains(err.Error(), why)
	})
	require.True(t, said, "%v does not say %q", err, why)
}

// InTime repeats a function call as long as the result is a time-out, because servers on a busy machine may respond
// late.
func InTime(call func() error) (err error) {
	Poll(func() bool {
		err = call()
		return err == nil || !strings.Contains(err.Error(), "deadline exceeded") &&
			!strings.Contains(err.Error(), "i/o timeout")
	})
	return err
}

// NoLeaks returns the exit status of the process that ran a package's tests. If goroutines of the tests still run,
// NoLeaks returns at least 1.
func NoLeaks(status int, options ...goleak.Option) int {
	err := goleak.Find(options...)
	// Each search for leaked goroutines takes half a second.
	for deadline := time.Now().Add(Patience); err != nil && time.Now().Before(deadline); {
		err = goleak.Find(options...)
	}
	if err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// Receive returns the next value from the channel. If no value arrives within Patience, Receive fails the test.
func Receive[T any](t testing.TB, from <-chan T, message ...any) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(Patience):
		require.Fail(t, "nothing came", message...)
		panic("unreachable")
	}
}

// OpenWhenRead waits until another process reads from a named pipe, and then opens the pipe for writing. The pipe stays
// open until the end of the test.
func OpenWhenRead(t testing.TB, pipe string) *os.File {
	t.Helper()
	var writer *os.File
	Eventually(t, func() bool {
		f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		writer = f
		return err == nil
	})
	t.Cleanup(func() { writer.Close() })
	return writer
}
