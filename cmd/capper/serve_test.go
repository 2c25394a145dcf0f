package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestServeDecidesABatch(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}, segments: {active: {daily: 2, weekly: 7}, ghost: {daily: 1}}}"))

	first, err := p.filter("promo-1", 0, 7, 1500, 4294967295)
	require.NoError(t, err)
	require.Equal(t, []uint32{0, 7, 1500, 4294967295}, first.Allowed)
	second, err := p.filter("promo-2", 0, 7, 1500, 4294967295)
	require.NoError(t, err)
	require.Equal(t, []uint32{1500}, second.Allowed)
	require.Len(t, second.Denied, 3)
	require.Equal(t, "daily", second.Denied[1].Limit)
	require.Equal(t, "new", second.Denied[1].Segment)
	require.WithinDuration(t, time.Now().Add(24*time.Hour), second.Denied[1].RetryAt, time.Minute)
	again, err := p.filter("promo-2", 1500)
	require.NoError(t, err)
	require.Equal(t, []uint32{1500}, again.Replayed)

	status := p.get("/v1/status")
	require.Contains(t, fmt.Sprint(status["config"]), "ghost", "a configured segment that is not published is reported")
	require.Contains(t, fmt.Sprint(status["config"]), "new", "so is a published one without limits")

	p.signal(syscall.SIGTERM)
	require.Equal(t, 0, p.cmd.ProcessState.ExitCode(), "%s", p.log)
}

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
	}, time.Minute, time.Millisecond)
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
		}, time.Minute, time.Millisecond)
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
	require.Eventually(t, func() bool { return answered.Load() > 20 }, time.Minute, time.Millisecond)
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

// A load balancer sees that the service is going before it is gone.
func TestNotReadyBeforeConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}}")
	write(t, file, strings.Replace(readFile(t, file), "stop_delay: 0s", "stop_delay: 10s", 1))
	p := serve(t, file)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		response, err := http.Get(p.url + "/readyz")
		require.NoError(t, err)
		response.Body.Close()
		return response.StatusCode == http.StatusServiceUnavailable
	}, time.Minute, 5*time.Millisecond)
	got, err := p.filter("still", 7)
	require.NoError(t, err)
	require.Equal(t, []uint32{7}, got.Allowed)
	<-p.exited
	require.Equal(t, 0, p.cmd.ProcessState.ExitCode())
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
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(p.get("/v1/status")["config"]), "must be 0 to 1000, got -1")
	},
		time.Minute, 10*time.Millisecond)
	require.Equal(t, before, p.get("/v1/status")["config_version"])

	write(t, file, embedded(dir, "{default: {daily: 2}, segments: {ghost: {}}}"))
	require.Eventually(t, func() bool { return p.get("/v1/status")["config_version"] != before }, time.Minute,
		10*time.Millisecond)
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
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(p.get("/v1/status")["config"]),
			"are uncapped")
	},
		time.Minute, 10*time.Millisecond, "what is hardly meant is said after a reload too")
	stop.Store(true)
	load.Wait()
	require.Nil(t, failed.Load())
}

func TestSegmentsAreRefreshedAndABadGenerationIsRefused(t *testing.T) {
	t.Parallel()
	file := configure(t, "{default: {daily: 1}, segments: {new: {daily: 0}}}")
	p := serve(t, file)
	place := filepath.Join(filepath.Dir(file), "segments")
	got, err := p.filter("m", 5, 1_000_005)
	require.NoError(t, err)
	require.Equal(t, []uint32{1_000_005}, got.Allowed)

	publish(t, place, "new=1000000-1000100")
	require.Eventually(t, func() bool { return p.get("/v1/status")["generation"] != got.Generation }, time.Minute,
		10*time.Millisecond)
	got, err = p.filter("m2", 5, 1_000_006)
	require.NoError(t, err)
	require.Equal(t, []uint32{5}, got.Allowed)
	p.logs(`msg=audit action=refresh result=accepted .* generation=` + got.Generation + ` before=\d`)

	require.NoError(t, os.WriteFile(filepath.Join(place, "current.json"), nil, 0o600))
	require.Eventually(t, func() bool {
		return strings.Contains(fmt.Sprint(p.get("/v1/status")["segments"]),
			"error:")
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, got.Generation, p.get("/v1/status")["generation"])
	got, err = p.filter("m3", 6)
	require.NoError(t, err)
	require.Equal(t, []uint32{6}, got.Allowed)
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
		require.Eventually(t, inUse(live(t, place)), time.Minute, 5*time.Millisecond)
		out, err := exec.Command(segmentbuild(t), "rollback", low, "--at", place).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Eventually(t, inUse(low), time.Minute, 5*time.Millisecond)
	}
	before := calls.Load()
	require.Eventually(t, func() bool { return calls.Load() > before+10 }, time.Minute, time.Millisecond)
	stop.Store(true)
	load.Wait()
	require.Nil(t, failed.Load())
	require.Nil(t, mixed.Load())
}

// live is the generation that current.json names.
func live(t *testing.T, place string) string {
	t.Helper()
	m := regexp.MustCompile(`"generation": "([^"]+)"`).FindStringSubmatch(readFile(t,
		filepath.Join(place, "current.json")))
	require.NotNil(t, m)
	return m[1]
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	t.Run("a second process on the same directory", func(t *testing.T) {
		t.Parallel()
		file := configure(t, "{default: {daily: 1}}")
		serve(t, file)
		second := launch(t, file)
		<-second.exited
		require.Equal(t, 1, second.cmd.ProcessState.ExitCode())
		require.Contains(t, second.log.String(), "another capper process has the store open")
	})
	t.Run("segments that were never published", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		file := filepath.Join(dir, "capper.yaml")
		write(t, file, embedded(dir, "{default: {daily: 1}}"))
		p := launch(t, file)
		<-p.exited
		require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
		require.Contains(t, p.log.String(), "capper: error: load segments from "+dir)
		require.Contains(t, p.log.String(), "hint: segmentbuild build --to")
	})
	t.Run("an address in use", func(t *testing.T) {
		t.Parallel()
		file := configure(t, "{default: {daily: 1}}")
		p := serve(t, file)
		dir := t.TempDir()
		publish(t, filepath.Join(dir, "segments"), "new=1-2")
		other := filepath.Join(dir, "capper.yaml")
		write(t, other, strings.Replace(embedded(dir, "{default: {daily: 1}}"), "127.0.0.1:0",
			strings.TrimPrefix(p.url, "http://"), 1))
		second := launch(t, other)
		<-second.exited
		require.Equal(t, 1, second.cmd.ProcessState.ExitCode())
		require.Contains(t, second.log.String(), "address already in use")
	})
}

func TestMetricsHoldNoUser(t *testing.T) {
	t.Parallel()
	p := serve(t, configure(t, "{default: {daily: 1}}"))
	for _, message := range []string{"a", "b"} {
		_, err := p.filter(message, 424_242_424)
		require.NoError(t, err)
	}
	response, err := http.Get(p.url + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	text := string(body)
	require.NotContains(t, text, "424242424")
	for _, metric := range []string{
		`capper_http_requests_total{`, `capper_http_request_seconds_bucket{`, `capper_users_total{`,
		`capper_store_calls_total{`,
		`capper_segments_generation_age_seconds`, `capper_config_reloads_total{result="refused"} 0`,
	} {
		require.Contains(t, text, metric)
	}
}
