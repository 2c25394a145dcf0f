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

// Patience is how long a test waits for what must come, and servers may take that are not broken:
// machines are slow at times.
const Patience = 30 * time.Second

// Eventually polls until the condition holds, and fails the test when it does
// not for very long. The message is that of testify's assertions.
func Eventually(t testing.TB, condition func() bool, message ...any) {
	t.Helper()
	require.Eventually(t, condition, Patience, 5*time.Millisecond, message...)
}

// FailsWith repeats the call, which must fail each time, until its error says why: on a busy
// machine something else may be late first.
func FailsWith(t testing.TB, why string, call func() error) {
	t.Helper()
	for deadline := time.Now().Add(Patience); ; time.Sleep(5 * time.Millisecond) {
		err := call()
		require.Error(t, err)
		if strings.Contains(err.Error(), why) {
			return
		}
		require.True(t, time.Now().Before(deadline), "%v does not say %q", err, why)
	}
}

// InTime repeats the call while all that is wrong is that its time was up: on a busy machine servers
// may be late for a short look.
func InTime(call func() error) error {
	for deadline := time.Now().Add(Patience); ; time.Sleep(5 * time.Millisecond) {
		err := call()
		late := err != nil && (strings.Contains(err.Error(), "deadline exceeded") || strings.Contains(err.Error(),
			"i/o timeout"))
		if !late || time.Now().After(deadline) {
			return err
		}
	}
}

// NoLeaks is the status of a package whose tests have ended with it, and 1 when they left goroutines
// behind for good.
func NoLeaks(status int, options ...goleak.Option) int {
	err := goleak.Find(options...)
	// each look takes half a second
	for deadline := time.Now().Add(Patience); err != nil && time.Now().Before(deadline); {
		err = goleak.Find(options...)
	}
	if err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}

// Receive is the next value of the channel, which must come.
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

// OpenWhenRead opens a named pipe for writing as soon as somebody reads from it,
// until the end of the test.
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
