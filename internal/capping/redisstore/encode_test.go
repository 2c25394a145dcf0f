package redisstore

import (
	"math/rand/v2"
	"slices"
	"testing"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/dispatch"
	"capper/internal/capping/redisstore/script"
)

// BenchmarkEncode measures the cost of a batch outside of the store: the plan of its users and the encoding of its
// calls.
func BenchmarkEncode(b *testing.B) {
	images := imagesOf(everyNth(65_536, 1))
	slices.Sort(images)
	spread := script.Spread(script.DepthFor(10_000_000))
	for name, c := range map[string]struct {
		keyspace script.Keyspace
		users    []capping.UserID
	}{
		"ascending, one id in 27": {script.Standard, everyNth(65_536, 27)},
		"random":                  {script.Standard, shuffled(everyNth(65_536, 27))},
		"ascending images":        {spread, images},
		"random images":           {spread, shuffled(slices.Clone(images))},
	} {
		b.Run(name, func(b *testing.B) {
			users := c.users
			s := &Store{config: Config{Namespace: "fc"}}
			s.place(c.keyspace, script.Known)
			batch := batchOf("m", users, rolling(1, 1<<40), rolling(3, 1<<42))
			op := &filterOperation{store: s, batch: batch, verdicts: make([]capping.Verdict, len(users))}
			op.prepare(0)
			var plan script.Plan
			var c dispatch.Command // as one whose buffers serve again
			b.ReportAllocs()
			for b.Loop() {
				plan.Arrange(s.keyspace, users)
				for _, part := range plan.Parts {
					for start := part.Start; start < part.End; start += dispatch.MostUsers {
						c.Partition, c.Items = part.Partition, plan.Items[start:min(start+dispatch.MostUsers, part.End)]
						op.Encode(&c)
						op.Stamp(&c, dispatch.Stamp{Now: 1, Since: capping.Never})
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(users)), "ns/user")
		})
	}
}

func shuffled(users []capping.UserID) []capping.UserID {
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
	return users
}
