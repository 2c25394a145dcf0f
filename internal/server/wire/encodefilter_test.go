package wire

import (
	"context"
	"testing"
	"time"

	"capper/internal/capping"
)

// BenchmarkEncodeFilter measures the answer about 100,000 dense users who are all allowed, or all denied.
func BenchmarkEncodeFilter(b *testing.B) {
	const users = 100_000
	for name, outcome := range map[string]capping.Outcome{"allowed": capping.Allowed, "denied": capping.Denied} {
		b.Run(name, func(b *testing.B) {
			d := denseDecisions(users, outcome)
			r := &FilterRequest{Enforce: true, Record: true}
			r.Users = d.Users
			sum := Summarize(d)
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				out = EncodeFilter(out[:0], r, d, sum)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/users, "ns/user")
		})
	}
}

func denseDecisions(users int, outcome capping.Outcome) *capping.Decisions {
	list := make([]capping.UserID, users)
	for i := range list {
		list[i] = capping.UserID(uint32(i) * 2654435769 >> 4)
	}
	return decided(list, outcome)
}

// decided returns decisions about users with one outcome. The times at which slots become free spread over a day.
func decided(list []capping.UserID, outcome capping.Outcome) *capping.Decisions {
	d := &dealt{codes: make([]uint8, len(list)), verdicts: make([]capping.Verdict, len(list))}
	for i := range d.verdicts {
		d.verdicts[i] = capping.Verdict{Outcome: outcome, FreesAt: 91_200_000_000 + capping.Instant(i*977%86_400_000)}
	}
	capper := capping.New(d, func() capping.Segments { return d }, dealtPolicy, time.Now)
	return capper.Filter(context.Background(), &capping.Send{Message: capping.Message{ID: "m"}, Users: list,
		Enforce: true, Record: true})
}
