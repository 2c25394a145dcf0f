package capping_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
)

// instant is a store that returns at once.
type instant struct{ capping.Store }

func (instant) ClockTolerance() time.Duration { return 0 }

func (instant) Filter(_ context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	for i := range verdicts {
		verdicts[i].Outcome = capping.Allowed
	}
	return nil
}

// cpu returns the processor time of this process. On a busy machine it is more reliable than the wall clock.
func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkFilterBeforeTheStore measures a call without the store, for a policy that has only limits.
func BenchmarkFilterBeforeTheStore(b *testing.B) {
	policy := &capping.Policy{
		Default: []capping.Limit{rolling("daily", 1, day), rolling("weekly", 2, 7*day)},
		Segments: map[string][]capping.Limit{"new": {rolling("daily", 1, day),
			{Name: "week", Max: 3, Calendar: capping.CalendarWeek}}},
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := capping.New(instant{}, func() capping.Segments { return halves{generation: "g"} }, policy,
		func() time.Time { return now })
	for _, n := range []int{1, 10_000} {
		users := make([]capping.UserID, n)
		for i := range users {
			users[i] = capping.UserID(rand.Uint32N(1000))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			began := cpu(b)
			b.ReportAllocs()
			for b.Loop() {
				c.Filter(context.Background(), &capping.Send{Message: capping.Message{ID: "m"}, Users: users,
					Enforce: true, Record: true})
			}
			b.ReportMetric(float64(cpu(b)-began)/float64(b.N*n), "cpu-ns/user")
		})
	}
}

// BenchmarkFilterWithEverythingOn measures a call of 10,000 random users without the store. The policy has
// two suppressed sets, a holdout and quiet hours in the users' zones, and look-ups of users cost nothing.
func BenchmarkFilterWithEverythingOn(b *testing.B) {
	people := &population{
		names: []string{"new", "vip"}, places: zonesOf(b, 38),
		sets: map[string]predicate{"opted-out": func(user capping.UserID) bool { return user%20 == 0 },
			"bounced": func(user capping.UserID) bool { return user%5 == 0 }},
		zone: func(user capping.UserID) uint16 { return uint16(user % 39) }, segment: func(user capping.UserID) uint8 {
			return uint8(user % 3)
		},
	}
	rollingOnly := []capping.Limit{rolling("daily", 1, day), rolling("weekly", 2, 7*day)}
	byDay := []capping.Limit{{Name: "day", Max: 1, Calendar: capping.CalendarDay, UserZone: true},
		rolling("weekly", 2, 7*day)}
	evening := []capping.Quiet{{Hours: hours(b, "21:00", "08:00"), UserZone: true}}
	suppress := []capping.Suppression{{Set: "opted-out"}, {Set: "bounced"}}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		policy *capping.Policy
	}{
		{"limits", &capping.Policy{Default: rollingOnly}},
		{"suppression", &capping.Policy{Default: rollingOnly, Suppress: suppress}},
		{"holdout", &capping.Policy{Default: rollingOnly, Holdout: holdout(b, 5)}},
		{"quiet", &capping.Policy{Default: rollingOnly, Quiet: evening}},
		{"users' days", &capping.Policy{Default: byDay}},
		{"all", &capping.Policy{Default: rollingOnly, Suppress: suppress, Holdout: holdout(b, 5), Quiet: evening}},
		{"all, and users' days", &capping.Policy{Default: byDay, Suppress: suppress, Holdout: holdout(b, 5),
			Quiet: evening}},
	} {
		capper := capping.New(instant{}, func() capping.Segments { return people }, c.policy,
			func() time.Time { return now })
		for _, n := range []int{1, 10_000} {
			users := make([]capping.UserID, n)
			for i := range users {
				users[i] = capping.UserID(rand.Uint32N(270_000_000))
			}
			b.Run(fmt.Sprint(c.name, "/", n), func(b *testing.B) {
				began := cpu(b)
				b.ReportAllocs()
				for b.Loop() {
					capper.Filter(context.Background(), &capping.Send{Message: capping.Message{ID: "m"}, Users: users,
						Enforce: true, Record: true})
				}
				b.ReportMetric(float64(cpu(b)-began)/float64(b.N*n), "cpu-ns/user")
			})
		}
	}
}

// fullUntil is a store that denies every user until an instant in the next month.
type fullUntil struct{ instant }

func (fullUntil) Filter(_ context.Context, b *capping.Batch, verdicts []capping.Verdict) error {
	now := capping.InstantOf(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	for i := range verdicts {
		verdicts[i] = capping.Verdict{Outcome: capping.Denied, FreesAt: now +
			capping.Instant(rand.Int64N((30 * day).Milliseconds()))}
	}
	return nil
}

// BenchmarkFilterSlotsThatAreFreeAtNight measures a call of a million users who are denied until different
// instants.
func BenchmarkFilterSlotsThatAreFreeAtNight(b *testing.B) {
	people := &population{places: zonesOf(b, 38), zone: func(user capping.UserID) uint16 { return uint16(user % 39) }}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, hours := range map[string][]capping.Quiet{"without": nil,
		"with": {{Hours: hours(b, "21:00", "08:00"), UserZone: true}}} {
		capper := capping.New(fullUntil{}, func() capping.Segments { return people },
			&capping.Policy{Default: []capping.Limit{rolling("d", 1, day)}, Quiet: hours},
			func() time.Time { return now })
		users := upTo(1_000_000)
		b.Run(name, func(b *testing.B) {
			began := cpu(b)
			b.ReportAllocs()
			for b.Loop() {
				capper.Filter(context.Background(), &capping.Send{Users: users, Enforce: true})
			}
			b.ReportMetric(float64(cpu(b)-began)/float64(b.N*len(users)), "cpu-ns/user")
		})
	}
}
