package testkit

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// standstill is a delay of a goroutine or of the disk. If a delay is at least standstill, the machine is too busy to
// show that code is slow.
const standstill = 50 * time.Millisecond

// Steadily repeats a test of speed until the function "try" returns true, at most "tries" times. If no try succeeds,
// Steadily fails the test, unless the machine stood still in more than half of the tries. A busy machine proves nothing
// about the code. The function "try" itself must check what must hold on every machine.
func Steadily(t testing.TB, tries int, try func() bool, message string) {
	t.Helper()
	judge(t, tries, func() (bool, time.Duration) {
		pulse := beginPulse(t)
		done := try()
		return done, pulse.end()
	}, message)
}

// judge repeats a measured try, which returns whether it succeeded and for how long the machine stood still.
func judge(t testing.TB, tries int, try func() (done bool, pause time.Duration), message string) {
	t.Helper()
	still := 0
	for range tries {
		done, pause := try()
		if done {
			return
		}
		if pause >= standstill {
			still++
		}
		t.Logf("%s; the machine stood still for %v", message, pause)
	}
	require.Greater(t, still, tries/2, "%s in each of %d tries", message, tries)
}

// pulse measures the longest time for which the machine did not run a goroutine or did not write to the disk.
type pulse struct {
	stop    chan struct{}
	running sync.WaitGroup
	longest atomic.Int64
}

func beginPulse(t testing.TB) *pulse {
	t.Helper()
	p := &pulse{stop: make(chan struct{})}
	p.beat(5*time.Millisecond, func() error { return nil })
	file, err := os.CreateTemp(t.TempDir(), "pulse")
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	p.beat(100*time.Millisecond, func() error {
		_, err := file.WriteAt([]byte{0}, 0)
		if err == nil {
			err = file.Sync()
		}
		return err
	})
	return p
}

// beat runs an action after each interval, and notes by how much the whole was late.
func (p *pulse) beat(interval time.Duration, act func() error) {
	p.running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-p.stop:
				return
			case <-ticker.C:
			}
			if act() != nil {
				return
			}
			now := time.Now()
			p.longest.Store(max(p.longest.Load(), int64(now.Sub(last)-interval)))
			last = now
		}
	})
}

// end stops the measurement and returns the longest pause.
func (p *pulse) end() time.Duration {
	close(p.stop)
	p.running.Wait()
	return time.Duration(p.longest.Load())
}
