package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/ids"
	"capper/internal/pacing"
	"capper/internal/server"
	"capper/internal/server/gate"
	"capper/internal/testkit"
)

// nothing is a store that answers at once, so that a benchmark measures only the service above the store.
type nothing struct {
	capping.Store
	outcome capping.Outcome // outcome of every user; Denied varies with the time of day
}

func (n nothing) Filter(_ context.Context, batch *capping.Batch, verdicts []capping.Verdict) error {
	for i := range verdicts {
		if len(batch.Rules[batch.Groups[i]]) == 0 {
			verdicts[i].Outcome = capping.Allowed
			continue
		}
		verdicts[i] = capping.Verdict{Outcome: n.outcome, FreesAt: capping.Instant(91_200_000_000 + i*977%86_400_000)}
	}
	return nil
}

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// serveFor serves h with the time-outs of the service.
func (s *service) serveFor(b *testing.B, h http.Handler) (addr string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	srv := s.server.HTTPServer(h, nil)
	go func() { _ = gate.Serve(srv, l) }()
	b.Cleanup(func() { require.NoError(b, srv.Close()) })
	return l.Addr().String()
}

// send makes another process send the load, and returns the result and the processor time of this process.
func send(b *testing.B, l load) (loaded, time.Duration) {
	b.Helper()
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), loadVariable+"="+l.text())
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	require.NoError(b, err)
	output, err := command.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, command.Start())
	reader := bufio.NewReader(output)
	ready, err := reader.ReadString('\n')
	require.NoError(b, err)
	require.Equal(b, "ready\n", ready)
	b.ResetTimer()
	before := cpu(b)
	_, err = io.WriteString(input, "go\n")
	require.NoError(b, err)
	said, err := reader.ReadBytes('\n')
	used := cpu(b) - before
	b.StopTimer()
	require.NoError(b, err)
	require.NoError(b, command.Wait())
	var result loaded
	require.NoError(b, json.Unmarshal(said, &result), "%s", said)
	return result, used
}

// heldBySegments is the memory of a small company's segments. Without this memory, the garbage collector runs every
// few milliseconds, and the random number of its runs changes the processor time by a fifth.
const heldBySegments = 128 << 20

func newBenchService(b *testing.B, store capping.Store, change ...func(*server.Config)) *service {
	b.Helper()
	held := make([]byte, heldBySegments)
	b.Cleanup(func() { runtime.KeepAlive(held) })
	change = append(change, func(cfg *server.Config) { cfg.Bounds.CallTimeout = time.Minute })
	return newServiceOver(b, store, testkit.NewClockAt(startOfTest), change...)
}

var batches = []struct {
	name  string
	users int
	bits  bool
}{{"json-10k", 10_000, false}, {"bitmap-1M", 1_000_000, true}}

// BenchmarkAboveStoreOfUUIDs measures BenchmarkAboveStore with random UUIDs as strings.
func BenchmarkAboveStoreOfUUIDs(b *testing.B) {
	for name, outcome := range map[string]capping.Outcome{"allowed": capping.Allowed, "denied": capping.Denied} {
		b.Run(name, func(b *testing.B) {
			held := make([]byte, heldBySegments)
			b.Cleanup(func() { runtime.KeepAlive(held) })
			uuids := scheme(b, ids.UUID)
			s := newIDServiceOver(b, uuids, nothing{openStoreOf(b, uuids, time.Now), outcome},
				testkit.NewClockAt(startOfTest), nil)
			l := load{Addr: s.serveFor(b, s.server.Public()), Path: "/v1/filter", Users: 10_000, UUIDs: true,
				Requests: b.N, Conns: 1}
			result, used := send(b, l)
			users := float64(b.N * l.Users)
			b.ReportMetric(float64(used.Nanoseconds())/users, "cpu-ns/user")
			b.ReportMetric(users/result.Seconds, "users/s")
		})
	}
}

// BenchmarkAboveStore measures the service's processor time per user from the socket to the store and back, with a
// store that costs nothing.
func BenchmarkAboveStore(b *testing.B) {
	for _, batch := range batches {
		for name, outcome := range map[string]capping.Outcome{"allowed": capping.Allowed, "denied": capping.Denied} {
			b.Run(batch.name+"/"+name, func(b *testing.B) {
				s := newBenchService(b, nothing{openStore(b, time.Now), outcome})
				l := load{Addr: s.serveFor(b, s.server.Public()), Path: "/v1/filter", Users: batch.users,
					Bitmap: batch.bits, Requests: b.N, Conns: 1}
				result, used := send(b, l)
				users := float64(b.N * batch.users)
				b.ReportMetric(float64(used.Nanoseconds())/users, "cpu-ns/user")
				b.ReportMetric(users/result.Seconds, "users/s")
			})
		}
	}
}

// BenchmarkEmbedded measures the same with the embedded store, and calls of the domain without HTTP. Every send is
// durable.
func BenchmarkEmbedded(b *testing.B) {
	for _, batch := range batches {
		l := load{Path: "/v1/filter", Users: batch.users, Bitmap: batch.bits, Conns: 1}
		b.Run(batch.name+"/http", func(b *testing.B) {
			s := newBenchService(b, openStore(b, time.Now))
			l.Addr, l.Requests = s.serveFor(b, s.server.Public()), b.N
			result, used := send(b, l)
			users := float64(b.N * batch.users)
			b.ReportMetric(float64(used.Nanoseconds())/users, "cpu-ns/user")
			b.ReportMetric(users/result.Seconds, "users/s")
		})
		b.Run(batch.name+"/store", func(b *testing.B) {
			s := newBenchService(b, openStore(b, time.Now))
			sends := make([]*capping.Send, l.different(b.N))
			for n := range sends {
				sends[n] = &capping.Send{Message: capping.Message{ID: fmt.Sprint("load-", n)},
					Users: make([]capping.UserID, l.Users), Enforce: true, Record: true}
				for i := range sends[n].Users {
					sends[n].Users[i] = capping.UserID(l.user(n, i))
				}
			}
			b.ResetTimer()
			before := cpu(b)
			for n := range b.N {
				s.capper.Filter(context.Background(), sends[n%len(sends)])
			}
			users := float64(b.N * batch.users)
			b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/users, "cpu-ns/user")
			b.ReportMetric(users/b.Elapsed().Seconds(), "users/s")
		})
	}
}

// BenchmarkLatency measures the time of small calls under concurrent load, in comparison with a bare echo handler
// that reads and discards the same bodies.
func BenchmarkLatency(b *testing.B) {
	for _, users := range []int{1, 1000} {
		for _, kind := range []string{"echo", "above-store", "embedded"} {
			b.Run(fmt.Sprintf("users-%d/%s", users, kind), func(b *testing.B) {
				store := openStore(b, time.Now)
				if kind != "embedded" {
					store = nothing{store, capping.Allowed}
				}
				s := newBenchService(b, store)
				handler := s.server.Public()
				if kind == "echo" {
					handler = bareEcho()
				}
				result, used := send(b, load{Addr: s.serveFor(b, handler), Path: "/v1/filter", Users: users,
					Requests: b.N, Conns: 16})
				b.ReportMetric(float64(result.P50.Microseconds()), "p50-µs")
				b.ReportMetric(float64(result.P99.Microseconds()), "p99-µs")
				b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/call")
			})
		}
	}
}

// given is a store of pacers that grants every request at no cost.
type given struct{ pacing.Store }

func (given) TakePermits(_ context.Context, ask *pacing.Ask) (pacing.Grant, error) {
	g := pacing.Grant{Granted: ask.Permits, Runs: []pacing.WaitRun{{Burst: 1, Permits: ask.Permits}}, Target: -1}
	for _, t := range ask.Targets {
		g.States = append(g.States, pacing.State{Used: make([]int, len(t.Limits))})
	}
	return g, nil
}

// BenchmarkPermits measures the cost and the rate of calls for a hundred permits with eight clients, in comparison
// with a bare echo handler.
func BenchmarkPermits(b *testing.B) {
	fast := &pacing.Policy{
		Pacers: []pacing.Pacer{{Name: "fast", Limits: []pacing.Limit{{Max: pacing.MaxMax, Window: time.Second}}}}}
	for _, kind := range []string{"echo", "above-store", "embedded"} {
		b.Run(kind, func(b *testing.B) {
			store := openStore(b, time.Now)
			permits, _ := capping.As[pacing.Store](store)
			if kind == "above-store" {
				permits = given{}
			}
			s := newServiceOver(b, store, testkit.NewClockAt(startOfTest),
				func(cfg *server.Config) { cfg.Pacers = pacing.New(permits, fast) })
			held := make([]byte, heldBySegments)
			defer runtime.KeepAlive(held)
			l := load{Path: "/v1/permits", Body: `{"pacers":["fast"],"permits":100,"max_wait":"1s"}`, Requests: b.N,
				Conns: 8}
			handler := s.server.Public()
			if kind == "echo" {
				handler, l.Path = bareEcho(), "/v1/filter"
			}
			l.Addr = s.serveFor(b, handler)
			result, used := send(b, l)
			b.ReportMetric(float64(used.Nanoseconds())/1000/float64(b.N), "cpu-µs/call")
			b.ReportMetric(100*float64(b.N)/result.Seconds, "permits/s")
			b.ReportMetric(float64(result.P99.Microseconds()), "p99-µs")
		})
	}
}

func bareEcho() http.Handler {
	e := echo.New()
	e.POST("/v1/filter", func(c echo.Context) error {
		if _, err := io.Copy(io.Discard, c.Request().Body); err != nil {
			return err
		}
		return c.JSONBlob(http.StatusOK, []byte(`{}`))
	})
	return e
}

// BenchmarkWithheld measures BenchmarkAboveStore with suppression by two sets, quiet hours in 38 user time zones, a
// daily limit in the user's time zone and a holdout.
func BenchmarkWithheld(b *testing.B) {
	for _, batch := range batches {
		b.Run(batch.name, func(b *testing.B) {
			held := make([]byte, heldBySegments)
			b.Cleanup(func() { runtime.KeepAlive(held) })
			store := nothing{openStore(b, time.Now), capping.Allowed}
			s, g := newSetServiceOver(b, store, testkit.NewClockAt(startOfTest),
				func(cfg *server.Config) { cfg.Bounds.CallTimeout = time.Minute })
			g.add(b, manySets())
			policy := setPolicy(b)
			policy.Quiet[0].Channels, policy.Holdout.Channels = capping.ChannelSet{}, capping.ChannelSet{}
			policy.Suppress[1].Channels = capping.ChannelSet{}
			s.capper.SetPolicy(policy)
			l := load{Addr: s.serveFor(b, s.server.Public()), Path: "/v1/filter", Users: batch.users,
				Bitmap: batch.bits, Requests: b.N, Conns: 1}
			result, used := send(b, l)
			users := float64(b.N * batch.users)
			b.ReportMetric(float64(used.Nanoseconds())/users, "cpu-ns/user")
			b.ReportMetric(users/result.Seconds, "users/s")
		})
	}
}

// manySets returns two suppression lists, with a fifth and a twentieth of 134 million users, and 38 time zones.
func manySets() map[string]*bitmap.Bitmap {
	every := func(n, rest uint32) *bitmap.Bitmap {
		ids := make([]uint32, 0, 134_000_000/n)
		for id := rest; id < 134_000_000; id += n {
			ids = append(ids, id)
		}
		return bitmap.OfSorted(ids)
	}
	sets := map[string]*bitmap.Bitmap{"opted-out": every(20, 3), "bounced": every(5, 1)}
	for zone := range uint32(24) {
		sets[fmt.Sprintf("tz/Etc/GMT-%d", zone%13)] = every(38, zone%13)
	}
	for i, place := range strings.Fields(`Asia/Singapore Asia/Jakarta Asia/Manila Asia/Tokyo Asia/Kolkata Asia/Dubai Europe/Berlin Europe/London Europe/Moscow
		America/New_York America/Chicago America/Denver America/Los_Angeles America/Sao_Paulo Africa/Lagos
		Africa/Cairo Africa/Nairobi Australia/Sydney
		Pacific/Auckland Asia/Karachi Asia/Dhaka Asia/Yangon Asia/Kathmandu Asia/Tehran Asia/Bangkok`) {
		sets["tz/"+place] = every(38, uint32(i)+13)
	}
	return sets
}
