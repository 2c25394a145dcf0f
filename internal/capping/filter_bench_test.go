package capping_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"capper/internal/capping"
)

// instant is a store that answers at once.
type instant struct{ capping.Store }

func (instant) ClockTolerance() time.Duration { return 0 }

func (instant) Filter(_ context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	for i := range verdicts {
		verdicts[i].Outcome = capping.Allowed
	}
	return nil
}

// BenchmarkFilterBeforeTheStore is what a call costs in front of the store, with a policy that has
// limits only.
func BenchmarkFilterBeforeTheStore(b *testing.B) {
	policy := &capping.Policy{
		Default:  []capping.Limit{rolling("daily", 1, day), rolling("weekly", 2, 7*day)},
		Segments: map[string][]capping.Limit{"new": {rolling("daily", 1, day), {Name: "week", Max: 3, Calendar: capping.CalendarWeek}}},
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := capping.New(instant{}, func() capping.Segments { return halves{generation: "g"} }, policy, func() time.Time { return now })
	for _, n := range []int{1, 10_000} {
		users := make([]capping.UserID, n)
		for i := range users {
			users[i] = rand.Uint32N(1000)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Filter(context.Background(), &capping.Send{Message: capping.Message{ID: "m"}, Users: users, Enforce: true, Record: true})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/user")
		})
	}
}
