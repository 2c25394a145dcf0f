package testkit

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// If a goroutine or the disk has a delay of at least standstill, the machine is too busy to show that code is slow.
const standstill = 50 * time.Millisecond

// The function Steadily repeats a test of speed until the function "try" returns true, at most "tries" times. If no try
// succeeds, Steadily fails the test, unless the machine stood still in more than half of the tries. A slow test on a
// busy machine proves nothing about the speed of the code. The function "try" must check all other conditions.
func Steadily(t testing.TB, tries int, try func() bool, message string) {
	t.Helper()
	judge(t, tries, func() (bool, time.Duration) {
		pulse := beginPulse(t)
		done := try()
		return done, pulse.end()
	}, message)
}

// The function "judge" repeats a measured try. The function "try" returns whether the test succeeded. The function
// "try" also returns the longest time for which the machine stood still (ran no goroutine or did not write to the
// disk).
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

// A pulse measures the longest time for which the machine did not run a goroutine or did not write to the disk.
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

// The method "beat" runs an action after each interval, and notes the delay of the interval and the action together.
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

// The method "end" stops the measurement and returns the longest pause.
func (p *pulse) end() time.Duration {
	close(p.stop)
	p.running.Wait()
	return time.Duration(p.longest.Load())
}
