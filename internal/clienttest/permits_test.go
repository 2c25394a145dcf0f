package clienttest

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/client"
	"capper/client/api"
	"capper/internal/testkit"
)

func TestPermitsAndPacers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url, _ := pacedBy(t, nil, testkit.NewClock().Now)
	c := newClient(t, client.Config{URL: url})
	got, err := c.Permits(ctx, api.PermitsRequest{Pacers: []string{"bounded", "message"}, Permits: 9,
		MaxWait: api.Wait(time.Second), MessageID: "m"})
	require.NoError(t, err)
	require.Equal(t, 4, got.Granted)
	require.Equal(t, 5, got.Refused)
	require.Equal(t, []api.Slot{{EveryMS: api.Millis(100 * time.Millisecond), Permits: 4}}, got.Slots)
	require.Equal(t, &api.LimitedBy{Pacer: "bounded", Limit: "rate"}, got.LimitedBy)

	list, err := c.Pacers(ctx)
	require.NoError(t, err)
	require.Len(t, list.Pacers, len(pacers.Pacers))
	require.Equal(t, "p1", list.ConfigVersion)
	one, err := c.Pacer(ctx, "bounded")
	require.NoError(t, err)
	require.Equal(t, "300ms", one.MaxWait)
	require.Positive(t, one.NextMS)
	used := func(message string) int {
		looked, err := c.Permits(ctx, api.PermitsRequest{Pacers: []string{"message"}, MessageID: message})
		require.NoError(t, err)
		return *looked.Pacers[0].Used
	}
	require.Equal(t, 4, used("m"))
	require.Equal(t, 0, used("other"))
	require.NoError(t, c.ForgetPacer(ctx, "message"))
	require.NoError(t, c.ForgetPacer(ctx, "message"))
	require.Equal(t, 0, used("m"))

	_, err = c.Permits(ctx, api.PermitsRequest{Pacers: []string{"none"}, Permits: 1})
	require.ErrorContains(t, err,
		`take permits of none: invalid_request: pacers[0]: must be a configured pacer, got "none"`)
	_, err = c.Pacer(ctx, "a/b c")
	require.True(t, client.HasCode(err, client.CodeNotFound), err)
	require.NoError(t, c.ForgetPacer(ctx, "none"), "the log of a pacer that left the configuration lives on")
	require.ErrorContains(t, c.ForgetPacer(ctx, "n o"), `forget pacer "n o": not_found`)
}

// However many answers are lost, permits are taken once, also without a request id.
func TestRetriesTakeNothingTwice(t *testing.T) {
	t.Parallel()
	url, g := paced(t, flaky(func() bool { return rand.N(3) == 0 }))
	c := newClient(t, client.Config{URL: url, Attempts: 30, MaxBackoff: 5 * time.Millisecond})
	const callers, calls = 8, 25
	var mu sync.Mutex
	granted := 0
	var asking sync.WaitGroup
	for range callers {
		asking.Go(func() {
			for range calls {
				got, err := c.Permits(t.Context(), api.PermitsRequest{Pacers: []string{"minute"}, Permits: 10})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				granted += got.Granted
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	require.Equal(t, callers*calls*10, granted)
	require.Len(t, g.granted(), granted)
}
