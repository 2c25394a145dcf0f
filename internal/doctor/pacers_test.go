package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/config"
	"capper/internal/pacing"
)

// TestPacersOfAGroupShareAShard checks that the load of a shard is that of one group, without the pacers whose number
// of logs is unknown.
func TestPacersOfAGroupShareAShard(t *testing.T) {
	t.Parallel()
	pacer := func(permits int, group string, per pacing.Per) pacing.Pacer {
		return pacing.Pacer{Rate: pacing.Rate{Permits: permits, Per: time.Second}, Group: group, Per: per}
	}
	look := func(all ...pacing.Pacer) string {
		var n notes
		of := &Subject{Config: &config.Config{Pacers: &pacing.Policy{Pacers: all},
			Store: config.Store{Kind: config.Redis}}}
		pacers(of).Look(t.Context(), &n)
		return n.list[0].Seen
	}
	require.Contains(t, look(pacer(20, "", ""), pacer(5, "", ""), pacer(2, "", pacing.PerKey)),
		"2 pacers permit up to 25 permits per second together; pacers with a separate limit for each message or key: 1")
	require.Contains(t, look(pacer(40_000, "a", ""), pacer(40_000, "b", "")), "2 pacers permit up to 80000")
	require.Contains(t, look(pacer(40_000, "a", ""), pacer(40_000, "a", "")),
		"the pacers of one shard permit up to 80000 permits per second together")
}
