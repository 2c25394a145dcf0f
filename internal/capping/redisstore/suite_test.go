package redisstore

import (
	"testing"
	"time"

	"capper/internal/campaign/campaigntest"
	"capper/internal/capping"
	"capper/internal/capping/storetest"
)

func TestStoreOnCluster(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}

func TestCampaignsOnCluster(t *testing.T) {
	t.Parallel()
	campaigntest.Run(t, func(t *testing.T, clock func() time.Time) campaigntest.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}
