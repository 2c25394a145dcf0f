package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/client/api"
	"capper/internal/config"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// overviewOf returns the overview's table of decisions, and the sums of GET /v1/activity.
func overviewOf(t *testing.T, s *Service) (table string, asked, allowed, denied int64) {
	t.Helper()
	status, table := see(t, s, 0, "/console/?format=csv&table=decided")
	require.Equal(t, http.StatusOK, status, table)
	status, text := see(t, s, 0, "/v1/activity?since=2h")
	require.Equal(t, http.StatusOK, status, text)
	var activity api.Activity
	require.NoError(t, json.Unmarshal([]byte(text), &activity))
	for _, hour := range activity.Hours {
		for _, part := range hour.Parts {
			asked, allowed, denied = asked+part.Asked, allowed+part.Allowed, denied+part.Denied
		}
		require.Equal(t, hour.Asked, hour.Allowed+hour.Denied["daily"])
	}
	return table, asked, allowed, denied
}

// shows reports whether the overview of the service counts these decisions.
func shows(t *testing.T, s *Service, allowed, denied int64) bool {
	t.Helper()
	table, asked, got, held := overviewOf(t, s)
	percent := func(part int64) float64 { return 100 * float64(part) / float64(allowed+denied) }
	want := fmt.Sprintf("Outcome,Users,Of all,They\r\nallowed,%d,%v,may receive the message; the send is recorded\r\n"+
		"held back by daily,%d,%v,had reached this limit\r\n", allowed, percent(allowed), denied, percent(denied))
	return table == want && asked == allowed+denied && got == allowed && held == denied
}

// TestTheOverviewIsShared checks that the overview is the same on all instances, and after a restart.
func TestTheOverviewIsShared(t *testing.T) {
	t.Parallel()
	for kind, store := range map[string]string{
		config.Embedded: onEmbedded(t.TempDir()),
		config.Redis:    onRedis(testcluster.Start(t, testcluster.Options{}).Addrs...),
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			first, _ := configure(t, store, "")
			services := []*Service{begin(t, first)}
			if kind == config.Redis {
				second, _ := configure(t, store, "")
				services = append(services, begin(t, second))
			}
			last := services[len(services)-1]
			for _, message := range []string{"a", "b"} { // b finds the users of a at their limit
				_, err := filter(t.Context(), services[0], message, 1, 2, 3)
				require.NoError(t, err)
			}
			_, err := filter(t.Context(), last, "a", 4, 5)
			require.NoError(t, err)
			for _, s := range services {
				testkit.Eventually(t, func() bool { return shows(t, s, 5, 3) }, "an instance does not count all calls")
			}

			require.NoError(t, services[0].Stop())
			services[0] = begin(t, first)
			require.True(t, shows(t, services[0], 5, 3), "after a restart")
			_, err = filter(t.Context(), services[0], "b", 4, 6, 7)
			require.NoError(t, err)
			for _, s := range services {
				testkit.Eventually(t, func() bool { return shows(t, s, 7, 4) }, "calls after a restart are not counted")
			}
			for _, s := range services {
				require.NoError(t, s.Stop())
			}
			require.True(t, shows(t, begin(t, first), 7, 4), "after all instances were stopped")
		})
	}
}
