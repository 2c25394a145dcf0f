package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testkit"
)

// The variable "malformations" lists mistakes in a batch. Every store must reject a batch with one of these mistakes.
// Each key of the map is a part of the expected error text. The function at a key of the map makes the mistake in a
// valid batch.
var malformations = map[string]func(b *capping.Batch){
	"each user, got 0 group numbers and 3":  func(b *capping.Batch) { b.Groups = nil },
	"each user, got 4 group numbers and 3":  func(b *capping.Batch) { b.Groups = append(b.Groups, 0) },
	"batch of decisions about 2 users must": func(b *capping.Batch) { b.Users = b.Users[:2] },
	"groups of rules, got 0":                func(b *capping.Batch) { b.Rules = nil },
	"groups of rules, got 257":              func(b *capping.Batch) { b.Rules = make([][]capping.Rule, 257) },
	"assigns a user to rule group 1, but":   func(b *capping.Batch) { b.Groups[2] = 1 },
	"assigns a user to rule group 255, but": func(b *capping.Batch) { b.Groups[0] = 255 },
	"must have at most 255 rules, got 256":  func(b *capping.Batch) { b.Rules[0] = make([]capping.Rule, 256) },
	"group 0: rule 0: max, the number of sends that a rule allows, must be 0 to " +
		"1000": func(b *capping.Batch) { b.Rules[0][0].Max = capping.LogBound + 1 },
	"a rule allows, must be 0 to 1000, got -1": func(b *capping.Batch) { b.Rules[0][0].Max = -1 },
	"rule 0: hold, the length of a rule's":     func(b *capping.Batch) { b.Rules[0][0].Hold = -1 },
	"rule 0: rule of a limit must have":        func(b *capping.Batch) { b.Rules[0][0].Hold = 0 },
	"1099511627775 ms after 2024-01-01T00:00:00Z, got 9 to 8": func(b *capping.Batch) {
		b.Rules[0][0] = capping.Rule{Start: 9,
			Until: 8}
	},
	"rule (which denies nobody) at index 32":  func(b *capping.Batch) { b.Rules[0] = manyRules(b, capping.MaxShadow) },
	"rule (which denies nobody) at index 254": func(b *capping.Batch) { b.Rules[0] = manyRules(b, 254) },
	"retention, the time for which sends":     func(b *capping.Batch) { b.Retention = 0 },
	"stored, must be 1ms to 43920h0m0s":       func(b *capping.Batch) { b.Retention = -time.Hour },
	"got 87840h0m0s":                          func(b *capping.Batch) { b.Retention = 10 * 366 * day },
	"records sends must have a message id": func(b *capping.Batch) {
		b.Message, b.Token = capping.Message{},
			capping.Token{}
	},
	"records sends must not set a time":       func(b *capping.Batch) { b.At = 1 },
	"between the years 2024 and 2058, got -1": func(b *capping.Batch) { b.Record, b.At = false, -1 },
	"between the years 2024 and 2058, got 1":  func(b *capping.Batch) { b.Record, b.At = false, capping.Never },
}

// manyRules returns a list that repeats the first rule of the batch, and ends with one shadow rule. The argument
// "before" of manyRules is the number of repetitions.
func manyRules(b *capping.Batch, before int) []capping.Rule {
	rules := slices.Repeat(b.Rules[0], before+1)
	rules[before].Shadow = true
	return rules
}

// malformedBatch checks that the store under test rejects every invalid batch with an error. The store must neither
// decide nor record a send for an invalid batch, and must continue to work.
func malformedBatch(f *fixture) {
	users := f.users(3)
	for want, spoil := range malformations {
		b := f.batch(f.message(), users, daily(1))
		spoil(b)
		verdicts := make([]capping.Verdict, 3)
		require.ErrorContains(f, f.store.Filter(context.Background(), b, verdicts), want)
		require.Equal(f, make([]capping.Verdict, 3), verdicts, want)
	}
	b := f.batch(f.message(), users)
	require.ErrorContains(f, f.store.Filter(context.Background(), b, nil),
		"each user, got 3 group numbers and 0 verdicts")
	require.ErrorContains(f, f.store.Filter(context.Background(), &capping.Batch{}, nil), "retention")
	for _, user := range users {
		require.Zero(f, f.log(user).Len())
	}
	f.healthyDespite(slices.Collect(maps.Keys(malformations))...)
	f.all(f.filter(f.batch(f.message(), users, daily(1))), capping.Allowed)
}

func malformedRelease(f *fixture) {
	users, message := f.users(3), f.message()
	f.all(f.filter(f.batch(message, users, daily(1))), capping.Allowed)
	for want, call := range map[string]struct {
		token   capping.Token
		results int
	}{
		"must have one result for each of 3 users, got 0":          {capping.Message{ID: message}.Token(), 0},
		"must have one result for each of 3 users, got 4":          {capping.Message{ID: message}.Token(), 4},
		"release (cancellation) of sends must name the message id": {capping.Token{}, 3},
	} {
		released := make([]capping.Released, call.results)
		require.ErrorContains(f, f.store.Release(context.Background(), call.token, 0, users, released), want)
		require.Equal(f, make([]capping.Released, call.results), released)
	}
	f.healthyDespite("release of sends")
	f.all(f.filter(f.batch(message, users, daily(1))), capping.Replayed)
}

// healthyDespite checks that the store under test is healthy, and that its health names none of the errors of rejected
// calls. On a busy machine, a Redis store can be degraded for seconds if a server replies late.
func (f *fixture) healthyDespite(rejected ...string) {
	health := f.store.Health(context.Background())
	for _, text := range rejected {
		require.NotContains(f, health.Error, text)
	}
	testkit.Eventually(f, func() bool { return f.store.Health(context.Background()).State == "ok" })
}

// userTwice checks a batch that lists users several times. Callers should not list a user twice, but a store need not
// detect such a mistake. If a batch lists a user several times, the store must still record one send for the user, and
// decide every occurrence of the user.
func userTwice(f *fixture) {
	users, message := f.users(600), f.message()
	for i := range users {
		users[i] = users[i/200*200] // three users, each 200 times
	}
	for range 2 {
		for _, v := range f.filter(f.batch(message, users, daily(1))) {
			require.Contains(f, []capping.Outcome{capping.Allowed, capping.Replayed}, v.Outcome)
		}
	}
	for i := range 3 {
		require.Equal(f, 1, f.log(users[i*200]).Len())
	}
	for _, v := range f.filter(f.batch(f.message(), users, daily(1))) {
		require.Equal(f, capping.Denied, v.Outcome)
	}
	for _, r := range f.release(message, users...) {
		require.NotEqual(f, capping.ReleaseUnavailable, r)
	}
	for i := range 3 {
		require.Zero(f, f.log(users[i*200]).Len())
	}
	f.all(f.filter(f.batch(f.message(), users[:1], daily(1))), capping.Allowed)
}

// clockTolerance checks that the store always reports the same clock tolerance, because every call makes its windows
// longer by the tolerance.
func clockTolerance(f *fixture) {
	tolerance := f.store.ClockTolerance()
	require.GreaterOrEqual(f, tolerance, time.Duration(0))
	require.Equal(f, 2*tolerance, capping.Widening(f.store))
	f.allowed(f.send(f.user(), daily(1)))
	f.clock.Advance(day)
	require.Equal(f, tolerance, f.store.ClockTolerance())
}
