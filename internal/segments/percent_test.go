package segments_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/segments"
)

func TestPercentagesAreRoundedToTheNearest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		percent float64
		text    string
	}{
		{0, "0"}, {10.34, "10.3"}, {10.35, "10.4"}, {99.94, "99.9"}, {99.99, "100"}, {100, "100"}, {122.2222, "122.2"},
		{0.05, "0.1"}, {0.04, "0.04"}, {0.00067, "0.001"}, {100.0 / (1 << 32), "0.00000002"}, {1234567.89, "1234567.9"},
	} {
		require.Equal(t, c.text, segments.PercentText(c.percent), c.percent)
	}
	require.Equal(t, "20.01", segments.PercentAbove(20.01, 20), "20.0 would be no reason")
	require.Equal(t, "20.1", segments.PercentAbove(20.05, 20))
	require.Equal(t, "57.3", segments.PercentAbove(57.28, 20))
	require.Equal(t, "0.1", segments.PercentAbove(0.051, 0.05))
	require.Equal(t, "0.25", segments.BoundText(2.5*0.1))
	require.Equal(t, "0.05", segments.BoundText(0.05))
	require.Equal(t, "0.75", segments.BoundText(2.5*0.3))
	require.Equal(t, "20", segments.BoundText(20))
}
