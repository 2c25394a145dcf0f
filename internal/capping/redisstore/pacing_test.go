package redisstore

import (
	"testing"

	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
)

func TestPacingOnCluster(t *testing.T) {
	t.Parallel()
	nothingForbidden(t)
	pacingtest.Run(t, func(t *testing.T) pacing.Store { return openShared(t, nil) })
}
