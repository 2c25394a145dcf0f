package main

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// plain is a system whose master is the slowest part: 10 µs a user on one shard.
func plain() System {
	return System{Blast: 1_000_000, Call: 10_000, InFlight: 8, Recorded: 1, Instances: 2, InstanceCores: 2, Shards: 1,
		Replicas: 1, Engine: 0.1e-6, Service: 0.1e-6, Master: 10e-6, Replica: 1e-6}
}

func TestOneCallGoesThroughEachStageInTurn(t *testing.T) {
	s := plain()
	s.Blast, s.Engine, s.Service, s.RTT = 10_000, 1e-6, 2e-6, 10*time.Millisecond
	// 10 ms of the engine, 10 of an instance with two cores, 5 on the way, 100 of the master, 5 on the way while it
	// works, 10 of the replica, and 20 on the way back while it works.
	require.InDelta(t, 0.140, Simulate(s).Took.Seconds(), 0.005)
}

func TestTheSlowestPartDecides(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*System)
		want   float64
	}{
		"the master":                   {func(*System) {}, 10},
		"the fullest of three masters": {func(s *System) { s.Shards = 3 }, 10 * 22.0 / 64},
		"more masters than partitions": {func(s *System) { s.Shards = 64 }, 10 / 64.0},
		"the instances":                {func(s *System) { s.Service = 80e-6 }, 20},
		"the replicas":                 {func(s *System) { s.Replica = 15e-6 }, 15},
		"the engine":                   {func(s *System) { s.Engine = 30e-6 }, 30},
		"users who are not recorded":   {func(s *System) { s.Replica, s.Recorded = 15e-6, 0.5 }, 10},
		"calls of one user beside it":  {func(s *System) { s.Single, s.SingleWork = 10_000, 50e-6 }, 20},
		"the cores of the machine":     {func(s *System) { s.Shared = 0.5 }, (10 + 1 + 0.2) / 0.5},
		"a failover":                   {func(s *System) { s.DownFor = 3 * time.Second }, 13},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := plain()
			c.change(&s)
			require.InEpsilon(t, c.want, Simulate(s).Took.Seconds(), 0.03)
		})
	}
}

func TestSharesOfMasters(t *testing.T) {
	for shards := 1; shards <= partitions; shards++ {
		sum := 0.0
		for i := range shards {
			sum += shareOf(i, shards)
			require.LessOrEqual(t, shareOf(i, shards), shareOf(0, shards))
		}
		require.InDelta(t, 1, sum, 1e-9)
		require.InDelta(t, fullest(shards), shareOf(0, shards), 1e-9)
	}
}

func TestUseOfParts(t *testing.T) {
	s := plain()
	r := Simulate(s)
	require.InDelta(t, 1, r.MasterBusy, 0.03)
	require.InDelta(t, 0.1, r.ReplicaUse, 0.01)
	require.InDelta(t, 0.1/10/2/2, r.Instance, 0.001)
	// Two instances with 4,096 users in flight each, of 10 µs.
	require.InDelta(t, 0.082, r.Behind.Seconds(), 0.001)
}

// More open calls wait longer, and the blast takes no longer.
func TestOpenCalls(t *testing.T) {
	few, many := plain(), plain()
	few.InFlight, many.InFlight = 1, 16
	require.Greater(t, Simulate(few).Took, Simulate(many).Took)
	require.Less(t, Simulate(few).Median, Simulate(many).Median)
}

// The page has what the program prints.
func TestThePageHasTheTables(t *testing.T) {
	page, err := os.ReadFile("../../docs/design/scale.md")
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, report(&out))
	require.Contains(t, string(page), "$ go run ./scripts/scale\n"+out.String()+"```\n")
}
