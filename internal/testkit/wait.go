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

// Patience is the longest time that a test waits for an expected event. It is long because machines may be slow.
const Patience = 2 * time.Minute

// Eventually polls until the condition holds, and fails the test after a very long time. The message has the form of
// testify's assertions.
func Eventually(t testing.TB, condition func() bool, message ...any) {
	t.Helper()
	require.Eventually(t, condition, Patience, 5*time.Millisecond, message...)
}

// Poll calls the condition until it holds, for code without a test to fail. It returns false after a very long time.
func Poll(condition func() bool) bool {
	for deadline := time.Now().Add(Patience); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// FailsWith repeats a call, which must fail each time, until the error contains the text why. On a busy machine the
// call may first fail with a time-out.
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

// InTime repeats the call while its only error is a time-out, because servers on a busy machine may answer late.
func InTime(call func() error) (err error) {
	Poll(func() bool {
		err = call()
		return err == nil || !strings.Contains(err.Error(), "deadline exceeded") &&
			!strings.Contains(err.Error(), "i/o timeout")
	})
	return err
}

// NoLeaks returns the exit status of a package's tests, or 1 if the tests left goroutines behind.
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

// Receive returns the next value from the channel. It fails the test if no value arrives.
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

// OpenWhenRead opens a named pipe for writing once another process reads from it. The pipe stays open until the end
// of the test.
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
