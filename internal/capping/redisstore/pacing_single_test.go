//go:build storms

package redisstore

import (
	"testing"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testcluster"
)

func TestPacingOnSingleServer(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	pacingtest.Run(t, func(t *testing.T) pacing.Store {
		return openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0), Namespace: namespace(),
			AttemptTimeout: patient})
	})
}

// Two instances on one server share the permits of pacers.
func TestPermitsOfASingleServerAreGreedilyTaken(t *testing.T) {
	t.Parallel()
	shared := namespace()
	open := func() pacing.Store { return openShared(t, func(c *Config) { c.Namespace = shared }) }
	pacingtest.RunGreedy(t, open(), open())
}
