package app

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audience"
	"capper/internal/capping"
	"capper/internal/config"
)

// TestNamesBesideAPolicy checks that a call with the policy from before a reload uses the expressions of that policy.
func TestNamesBesideAPolicy(t *testing.T) {
	t.Parallel()
	var a audiences
	var before *config.Config
	for _, text := range []string{"active", "vip", "active - vip"} {
		named, err := audience.NewNamed(map[string]string{"engaged": text})
		require.NoError(t, err)
		cfg := &config.Config{Policy: &capping.Policy{}, Audiences: named}
		a.take(cfg)
		require.Equal(t, text, a.of(cfg.Policy).Text("engaged"))
		if before != nil {
			require.Same(t, before.Audiences, a.of(before.Policy))
		}
		before = cfg
	}
}
