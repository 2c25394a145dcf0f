package sizing_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/sizing"
)

// A blast of less than a minute writes no more than all of itself, however fast it is.
func TestBacklogIsNoMoreThanTheBlast(t *testing.T) {
	t.Parallel()
	load := sizing.Load{Users: 1e8, Blast: 1e7, Shards: 3}
	backlog := func(within time.Duration) float64 {
		load.Within = within
		return sizing.Backlog(load.WithDefaults())
	}
	whole := backlog(time.Minute)
	require.Greater(t, whole, 64.0*(1<<20))
	require.InEpsilon(t, whole, backlog(time.Second), 1e-9)
	require.InEpsilon(t, whole/2, backlog(2*time.Minute), 1e-9)
}

// Machines read the load by names of one kind, and times in seconds.
func TestLoadAsJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(sizing.Plan{Load: sizing.Load{Users: 1000, Shards: 1, Within: 90 * time.Second,
		Single: 2}.WithDefaults()})
	require.NoError(t, err)
	require.JSONEq(t, `{"figures": null, "load": {"users": 1000, "sends": 5, "density": 1, "days": 7, "campaigns": 10, "blast": 100, "within_seconds": 90,
		"calls": 2, "shards": 1, "replicas": 2, "instances": 2}}`, string(text))
}
