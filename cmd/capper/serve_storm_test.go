//go:build storms

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/testkit"
)

// Answered allowed is a promise: it must be found after a kill -9.
func TestKill9LosesNoAllowed(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}")
	p := serve(t, file)
	var mu sync.Mutex
	var promised []uint32
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for call := 0; ; call++ {
				users := make([]uint32, 50)
				for i := range users {
					users[i] = uint32(caller*10_000_000 + call*50 + i)
				}
				got, err := p.filter("blast", users...)
				if err != nil {
					return
				}
				mu.Lock()
				promised = append(promised, got.Allowed...)
				mu.Unlock()
			}
		})
	}
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(promised) > 10_000
	}, testkit.Patience, time.Millisecond)
	p.signal(syscall.SIGKILL)
	callers.Wait()

	p = serve(t, file)
	for len(promised) > 0 {
		n := min(len(promised), 50_000)
		require.Eventually(t, func() bool {
			got, err := p.filter("another", promised[:n]...)
			require.NoError(t, err)
			require.Empty(t, got.Allowed, "users who were answered allowed had no send in their log")
			return len(got.Denied) == n
		}, testkit.Patience, time.Millisecond)
		promised = promised[n:]
	}
}

// SIGTERM under load: a call is answered whole or was never begun. A call that
// arrives on an idle connection as it is closed has no answer; it must have
// recorded all of its users or none.
func TestSIGTERMLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}")
	p := serve(t, file)
	batch := func(caller, call uint32) []uint32 {
		users := make([]uint32, 2000)
		for i := range users {
			users[i] = caller<<28 + call*2000 + uint32(i)
		}
		return users
	}
	var answered, wrong atomic.Int64
	var callers sync.WaitGroup
	var calls [4]uint32 // answered, by caller; one more was cut off
	for caller := range uint32(4) {
		callers.Go(func() {
			for {
				got, err := p.filter("blast", batch(caller, calls[caller])...)
				if err != nil {
					if strings.Contains(err.Error(), "status") {
						wrong.Add(1)
					}
					return
				}
				if len(got.Allowed) != 2000 {
					wrong.Add(1)
				}
				answered.Add(1)
				calls[caller]++
			}
		})
	}
	require.Eventually(t, func() bool { return answered.Load() > 20 }, 2*time.Minute, time.Millisecond)
	p.signal(syscall.SIGTERM)
	callers.Wait()
	require.Equal(t, 0, p.cmd.ProcessState.ExitCode(), "%s", p.log)
	require.Zero(t, wrong.Load())
	require.Contains(t, p.log.String(), "msg=stopped")

	p = serve(t, file)
	for caller := range uint32(4) {
		got, err := p.filter("another", batch(caller, calls[caller]-1)...)
		require.NoError(t, err)
		require.Empty(t, got.Allowed, "the last call that was answered")
		got, err = p.filter("another", batch(caller, calls[caller])...)
		require.NoError(t, err)
		require.Contains(t, []int{0, 2000}, len(got.Allowed), "the call without an answer")
	}
}

func TestReloadUnderLoadDropsNothingAndKeepsHistory(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}")
	p := serve(t, file)
	dir := filepath.Dir(file)
	var failed atomic.Value
	var stop atomic.Bool
	var load sync.WaitGroup
	load.Go(func() {
		for i := uint32(0); !stop.Load(); i++ {
			if _, err := p.filter("load", 5_000_000+i); err != nil {
				failed.Store(err)
				return
			}
		}
	})
	_, err := p.filter("first", 7)
	require.NoError(t, err)
	got, err := p.filter("second", 7)
	require.NoError(t, err)
	require.Empty(t, got.Allowed)
	before := got.ConfigVersion

	write(t, file, embedded(dir, "{default: {daily: -1}}"))
	testkit.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(p.get("/v1/status")["config"]), "must be 0 to 1000, got -1")
	})
	require.Equal(t, before, p.get("/v1/status")["config_version"])

	write(t, file, embedded(dir, "{default: {daily: 2}, segments: {ghost: {}}}"))
	testkit.Eventually(t, func() bool { return p.get("/v1/status")["config_version"] != before })
	got, err = p.filter("second", 7)
	require.NoError(t, err)
	require.Equal(t, []uint32{7}, got.Allowed, "the raised limit applies to the send already recorded")
	got, err = p.filter("third", 7)
	require.NoError(t, err)
	require.Empty(t, got.Allowed, "and that send still counts")
	write(t, file, embedded(dir, "{}"))
	p.logs(`msg=audit action=reload result=refused client="" key="" request_id=[0-9a-f]{24} version=` + before)
	p.logs(`msg=audit action=reload result=accepted client="" key="" request_id=[0-9a-f]{24} version=` +
		got.ConfigVersion)
	testkit.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(p.get("/v1/status")["config"]),
			"are uncapped")
	}, "what is hardly meant is said after a reload too")
	stop.Store(true)
	load.Wait()
	require.Nil(t, failed.Load())
}

// Generations are published, rolled back and damaged while calls run: no call
// fails, and each is decided by the one generation that it names. Segment new
// has limit 0; it is either the users below 1000 or those from 1000.
func TestNoCallSeesAMixOfGenerations(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {}, segments: {new: {daily: 0}}}")
	place := filepath.Join(filepath.Dir(file), "segments")
	publish(t, place, "new=1-999")
	low := live(t, place)
	p := serve(t, file)

	var mixed, failed atomic.Value
	var calls atomic.Int64
	var stop atomic.Bool
	var load sync.WaitGroup
	for caller := range 3 {
		load.Go(func() {
			for !stop.Load() {
				got, err := p.filter(fmt.Sprintf("m-%d-%d", caller, calls.Add(1)), 5, 6, 1005, 1006)
				if err != nil {
					failed.Store(err)
					return
				}
				want := []uint32{5, 6}
				if got.Generation == low {
					want = []uint32{1005, 1006}
				}
				if !slices.Equal(want, got.Allowed) {
					mixed.Store(fmt.Sprint(got))
				}
			}
		})
	}
	inUse := func(generation string) func() bool {
		return func() bool { return p.get("/v1/status")["generation"] == generation }
	}
	for range 3 {
		publish(t, place, "new=1000-1999")
		testkit.Eventually(t, inUse(live(t, place)))
		out, err := exec.Command(segmentbuild(t), "rollback", low, "--at", place).CombinedOutput()
		require.NoError(t, err, "%s", out)
		testkit.Eventually(t, inUse(low))
	}
	before := calls.Load()
	require.Eventually(t, func() bool { return calls.Load() > before+10 }, 2*time.Minute, time.Millisecond)
	stop.Store(true)
	load.Wait()
	require.Nil(t, failed.Load())
	require.Nil(t, mixed.Load())
}
