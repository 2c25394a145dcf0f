package ops

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/segments/ingest/format"
)

// Rows of several runs come in the order of their namespaces and times, all of them, as often as they are asked for.
func TestRunsAreMerged(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 99, 100, 101, 2500} {
		s := &sorter{dir: t.TempDir(), most: 100}
		var want []format.SendRow
		for range n {
			r := format.SendRow{User: capping.UserID(rng.Uint64()),
				ID:      []string{"", "é", strconv.Itoa(rng.IntN(9))}[rng.IntN(3)],
				At:      int64(rng.IntN(1000)) - 10,
				Channel: []string{"", "push"}[rng.IntN(2)], MessageID: "é" + strconv.Itoa(rng.IntN(50)),
				Namespace: []string{"", "crm", "growth"}[rng.IntN(3)],
			}
			want = append(want, r)
			require.NoError(t, s.add(r))
		}
		slices.SortFunc(want, inTurn)
		for range 2 {
			var got []format.SendRow
			require.NoError(t, s.each(func(r format.SendRow) error {
				got = append(got, r)
				return nil
			}))
			require.Equal(t, want, got)
		}
		require.NoError(t, s.close())
		left, err := os.ReadDir(s.dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
