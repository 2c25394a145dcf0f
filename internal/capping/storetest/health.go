package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testkit"
)

// IsOK waits until the store reports no problem and its failed calls are no longer counted. On a
// busy machine, one check may have missed a server.
func IsOK(t testing.TB, s interface {
	Health(ctx context.Context) capping.Health
}) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		h := s.Health(t.Context())
		require.Equal(c, "ok", h.State, h.Error)
	}, 2*testkit.Patience, 10*time.Millisecond)
}
