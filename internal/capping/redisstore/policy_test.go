package redisstore

import (
	"testing"
	"time"

	"capper/internal/capping"
	"capper/internal/capping/cappertest"
)

func TestPoliciesOnCluster(t *testing.T) {
	t.Parallel()
	cappertest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store {
		return openShared(t, func(c *Config) { c.Clock = clock })
	})
}
