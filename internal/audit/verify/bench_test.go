package verify_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/audit"
	"capper/internal/audit/archive"
	"capper/internal/audit/audittest"
	"capper/internal/audit/verify"
	"capper/internal/bitmap"
	"capper/internal/capping"
	"capper/internal/config"
	"capper/internal/objects"
)

// BenchmarkCheck verifies 20 blasts, each to half of ten million users at random, of users
// with segments.
func BenchmarkCheck(b *testing.B) {
	b.Run("dense", func(b *testing.B) { benchCheck(b, false) })
	b.Run("images", func(b *testing.B) { benchCheck(b, true) })
}

func benchCheck(b *testing.B, wide bool) {
	const users, blasts = 10_000_000, 20
	at := objects.NewDirectory(b.TempDir())
	from, of := archive.New(at, config.ParsePolicy), worlds
	var images []capping.UserID
	if wide {
		from.Of(audittest.IDs())
		of = imageWorlds
		nameIDs(b, at)
		for id := range uint32(users) {
			images = append(images, audittest.Image(id))
		}
		slices.Sort(images)
	}
	audittest.Policy(b, at, "c1", "version: c1\n"+head+"  default: [{name: daily, max: 9, window: 24h}, {name: "+
		"month, max: 20, calendar: month}]\n  segments: {new: {daily: 9}}\n")
	w := audittest.NewWriter(at, 1)
	w.IDs = from.IDs()
	random := rand.New(rand.NewPCG(1, 2))
	var sends int
	for n := range blasts {
		var ids []uint32
		for id := uint32(0); id < users; id++ {
			if random.Uint32()&1 == 0 {
				ids = append(ids, id)
			}
		}
		sends += len(ids)
		r := sent(noon+capping.Instant(n)*8*hour, fmt.Sprint("blast-", n), 1)
		r.Groups = []audit.Group{{Outcome: audit.Allowed}}
		if !wide {
			r.Groups[0].Users = bitmap.OfSorted(ids)
		}
		for _, id := range ids {
			if wide {
				r.Groups[0].Images = append(r.Groups[0].Images, images[id])
			}
		}
		w.Roll(b, audittest.Frames(r)...)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		report, err := verify.Check(b.Context(), from, verify.Config{Segments: of})
		require.NoError(b, err)
		require.Empty(b, report.Findings)
		require.EqualValues(b, sends, report.Sends)
	}
	b.ReportMetric(float64(sends)*float64(b.N)/b.Elapsed().Seconds(), "sends/s")
}
