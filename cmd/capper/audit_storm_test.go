//go:build storms

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// answered is what was answered to the calls of a test: the message of each, and when.
type answered struct {
	mu    sync.Mutex
	calls map[string]time.Time
}

func (a *answered) add(message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls[message] = time.Now()
}

// await waits until as many more calls are answered.
func (a *answered) await(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.calls)
	}
	want := count() + more
	testkit.Eventually(t, func() bool { return count() >= want })
}

// blast asks for batches of users from several goroutines until the service is gone, with a
// breath between calls: a kill finds some under way, and the machine is not full of them.
func (a *answered) blast(p *process, name string) (wait func()) {
	var callers sync.WaitGroup
	for c := range 3 {
		callers.Go(func() {
			users, breath := make([]uint32, 200), time.NewTicker(10*time.Millisecond)
			defer breath.Stop()
			for n := 0; ; n++ {
				<-breath.C
				for i := range users {
					users[i] = uint32(10_000*c + i*3)
				}
				message := fmt.Sprintf("%s-%d-%d", name, c, n)
				if _, err := p.filter(message, users...); err != nil {
					return
				}
				a.add(message)
			}
		})
	}
	return callers.Wait
}

// flushedTwice waits until the service has flushed its audit twice: what was answered before flushed is on the disk.
// The two flushes are a second apart.
func (p *process) flushedTwice() (flushed time.Time, apart time.Duration) {
	p.t.Helper()
	next := func(last time.Time) time.Time {
		testkit.Eventually(p.t, func() bool { return p.flushed().After(last) })
		return p.flushed()
	}
	first := next(time.Now())
	flushed = next(first)
	return flushed, flushed.Sub(first)
}

// A service that is killed in the middle of blasts, three times, and its neighbour that writes the same
// place: every call that was answered before the last flush is recorded, once, and no file is damaged.
func TestKill9LosesLessThanASecondOfTheAudit(t *testing.T) {
	t.Parallel()
	place := filepath.Join(t.TempDir(), "audit")
	audited := "audit: {to: " + place + ", roll: 2s}\n"
	file, other := configure(t, "{default: {daily: 1000}}"), configure(t, "{default: {daily: 1000}}")
	for _, f := range []string{file, other} {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		write(t, f, string(text)+audited)
	}
	calls := &answered{calls: map[string]time.Time{}}
	neighbour := serve(t, other)
	end := calls.blast(neighbour, "neighbour")
	killed, soonest := map[string]time.Time{}, time.Hour
	for life := 0; life < 3 || soonest >= 2*time.Second; life++ { // one that is late is the machine's, all are not
		require.Less(t, life, 10, "flushes are %s apart", soonest)
		p := serve(t, file)
		wait := calls.blast(p, fmt.Sprint("life-", life))
		flushed, apart := p.flushedTwice()
		calls.await(t, life%3*100) // somewhere between two flushes
		p.signal(syscall.SIGKILL)
		killed[fmt.Sprint("life-", life)] = flushed
		soonest = min(soonest, apart)
		wait()
	}
	last := serve(t, file)
	last.signal(syscall.SIGTERM)
	neighbour.signal(syscall.SIGTERM)
	end()

	found := recordedIn(t, place)
	lost := 0
	for message, at := range calls.calls {
		life := message[:strings.LastIndexByte(message[:strings.LastIndexByte(message, '-')], '-')]
		flushed, wasKilled := killed[life]
		if found[message] == 0 {
			lost++
			require.True(t, wasKilled && at.After(flushed), "%s, answered %v before the last flush", message,
				flushed.Sub(at))
		}
	}
	for message, n := range found {
		require.Equal(t, 1, n, message)
	}
	require.NotEmpty(t, calls.calls)
	t.Logf("%d calls answered, %d recorded, %d lost with their process", len(calls.calls), len(found), lost)
	rooms, err := os.ReadDir(filepath.Join(place, "open"))
	require.NoError(t, err)
	require.Empty(t, rooms, "all of it is at its place")
}
