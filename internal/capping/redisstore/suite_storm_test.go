//go:build storms

package redisstore

import (
	"testing"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/messages/messagestest"
	"capper/internal/testcluster"
)

func TestStoreOnSingleServer(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	storetest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0), Clock: clock, Namespace: namespace(),
			AttemptTimeout: patient})
	})
}

func TestCampaignsOnSingleServer(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	messagestest.Run(t, func(t *testing.T, clock func() time.Time) messagestest.Store {
		return openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0), Clock: clock, Namespace: namespace(),
			AttemptTimeout: patient})
	})
}
