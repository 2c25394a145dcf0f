package topology

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRoundTrips(t *testing.T) {
	t.Parallel()
	var trips RoundTrips
	require.Zero(t, trips.Time())
	trips.note(&trips.connects, 3*time.Millisecond)
	trips.note(&trips.firsts, 600*time.Millisecond)
	require.Equal(t, 600*time.Millisecond, trips.Time())
	require.Equal(t, time.Second+2400*time.Millisecond, trips.Patience(time.Second, time.Second))
	trips.note(&trips.firsts, 5*time.Millisecond) // the first answer was slow, but the server is near
	require.Equal(t, 5*time.Millisecond, trips.Time())
	for range 8 {
		trips.note(&trips.firsts, time.Hour)
	}
	require.Equal(t, 5*time.Second, trips.Patience(time.Second, time.Second), "bounded")
}
