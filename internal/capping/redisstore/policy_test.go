package redisstore

import (
	"testing"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
)

func TestPoliciesOnCluster(t *testing.T) {
	t.Parallel()
	storetest.RunPolicies(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}

func TestPoliciesOfSpreadStoreOnCluster(t *testing.T) {
	t.Parallel()
	storetest.RunPolicies(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return images{openShared(t, func(c *Config) { c.Clock, c.IDs = clock, uuids })}
	})
}
