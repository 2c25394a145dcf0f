package redisstore

import (
	"testing"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/messages/messagestest"
)

func TestStoreOnCluster(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}

func TestCampaignsOnCluster(t *testing.T) {
	t.Parallel()
	messagestest.Run(t, func(t *testing.T, clock func() time.Time) messagestest.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}
