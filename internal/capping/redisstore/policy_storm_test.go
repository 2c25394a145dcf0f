//go:build storms

package redisstore

import (
	"testing"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
)

func TestPoliciesOnSingleServer(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	storetest.RunPolicies(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0), Clock: clock, Namespace: namespace()})
	})
}
