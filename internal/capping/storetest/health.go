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

// IsOK waits until the store reports the state "ok" without a problem or a recent failed call. IsOK waits because, on a
// busy machine, the store's check of a server may have had no reply yet.
func IsOK(t testing.TB, s interface {
	Health(ctx context.Context) capping.Health
}) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		h := s.Health(t.Context())
		require.Equal(c, "ok", h.State, h.Error)
	}, 2*testkit.Patience, 10*time.Millisecond)
}
