package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client/api"
)

// A message whose sends were imported has no first call until one asks for it.
func TestWhenAMessageWasCalled(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	require.Equal(t, "no calls, but imported sends at 2026-11-20T09:00:00Z", when(&api.Message{LastCall: at}))
	require.Equal(t, "2 calls from 2026-11-20T09:00:00Z to 2026-11-20T09:01:00Z",
		when(&api.Message{Calls: 2, FirstCall: at, LastCall: at.Add(time.Minute)}))
}
