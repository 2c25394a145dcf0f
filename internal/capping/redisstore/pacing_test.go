package redisstore

import (
	"testing"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testcluster"
)

func TestPacingOnCluster(t *testing.T) {
	t.Parallel()
	pacingtest.Run(t, func(t *testing.T) pacing.Store { return openShared(t, nil) })
}

func TestPacingOnSingleServer(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	pacingtest.Run(t, func(t *testing.T) pacing.Store {
		return openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0), Namespace: namespace()})
	})
}

// Two instances over one cluster share what pacers give.
func TestPacingIsGreedilyTaken(t *testing.T) {
	t.Parallel()
	shared := namespace()
	open := func() pacing.Store { return openShared(t, func(c *Config) { c.Namespace = shared }) }
	pacingtest.RunGreedy(t, open(), open())
}
