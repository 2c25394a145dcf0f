package audit_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
)

// Records of one instance come in the order of their times, so sequences change places. Only lost ones are gaps.
func TestSequencesFindGapsInAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var s audit.Sequences
		want := int64(0)
		for _, instance := range []string{"a", "b"} {
			first, kept := 1+r.Uint64N(1000), []uint64(nil)
			for n := range 1 + r.Uint64N(50) {
				if r.IntN(4) > 0 {
					kept = append(kept, first+n)
				}
			}
			for i := range kept {
				if i > 0 && kept[i] > kept[i-1]+1 {
					want++
				}
			}
			r.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
			for _, n := range kept {
				s.Add(instance, n)
			}
		}
		require.Equal(t, want, s.Gaps(), "seed %d", seed)
	}
}
