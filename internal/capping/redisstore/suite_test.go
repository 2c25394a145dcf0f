package redisstore

import (
	"testing"
	"time"

	"capper/internal/campaign/campaigntest"
	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
)

func TestStoreOnCluster(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}

func TestStoreOnSingleServer(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	storetest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0), Clock: clock, Namespace: namespace()})
	})
}

func TestCampaignsOnCluster(t *testing.T) {
	t.Parallel()
	campaigntest.Run(t, func(t *testing.T, clock func() time.Time) campaigntest.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}

func TestCampaignsOnSingleServer(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	campaigntest.Run(t, func(t *testing.T, clock func() time.Time) campaigntest.Store {
		return openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0), Clock: clock, Namespace: namespace()})
	})
}
