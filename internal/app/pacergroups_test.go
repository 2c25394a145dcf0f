package app

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/config"
	"capper/internal/pacing"
)

// With Redis, a group that shares its slot with another one is named.
func TestGroupsThatShareASlotAreNamed(t *testing.T) {
	t.Parallel()
	cfg := &config.Config{Pacers: &pacing.Policy{Pacers: []pacing.Pacer{{Name: "a"}, {Name: "b", Group: "sms"},
		{Name: "c", Group: "sms"}, {Name: "d", Group: "mail"}}}}
	cfg.Store.Kind = config.Redis
	require.Empty(t, GroupsOfOneSlot(cfg))
	for i := range 64 {
		cfg.Pacers.Pacers = append(cfg.Pacers.Pacers, pacing.Pacer{Name: fmt.Sprint(i), Group: fmt.Sprint("g", i)})
	}
	warnings := GroupsOfOneSlot(cfg)
	require.NotEmpty(t, warnings, "there are 64 slots")
	for _, warning := range warnings {
		require.Regexp(t, `^pacers: the group \S+ has the same Redis slot as (the group \S+|the pacers without a group), `+
			`so a fault of this slot stops both; another name has another slot$`, warning)
	}
	cfg.Store.Kind = config.Embedded
	require.Empty(t, GroupsOfOneSlot(cfg))
}
