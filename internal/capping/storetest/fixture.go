package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testkit"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// Clock is a clock that moves only when a test calls Advance. A Clock is safe for concurrent use.
type Clock struct{ *testkit.Clock }

// NewClock returns a Clock at the present time, truncated to a millisecond.
func NewClock() *Clock { return &Clock{testkit.NewClock()} }

// Instant returns the clock's time as a capping.Instant.
func (c *Clock) Instant() capping.Instant { return capping.InstantOf(c.Now()) }

// The type "fixture" holds the store and the clock of one test case, and creates users and message ids for the case.
type fixture struct {
	*testing.T
	store capping.Store
	clock *Clock
}

func newFixture(t *testing.T, open Open) *fixture {
	clock := NewClock()
	return &fixture{t, open(t, clock.Now), clock}
}

// A random number for each test process makes message ids unique, even if several test processes use one store. The
// test process also uses each user only once.
var (
	process   = rand.Uint64()
	nextUser  = func() *atomic.Uint32 { n := new(atomic.Uint32); n.Store(1 + rand.Uint32N(1<<31)); return n }()
	nextNames atomic.Uint64
)

// The method "users" returns n users with consecutive ids that no other test case uses.
func (f *fixture) users(n int) []capping.UserID {
	first := nextUser.Add(uint32(n)) - uint32(n)
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = capping.UserID(first) + capping.UserID(i)
	}
	return users
}

func (f *fixture) user() capping.UserID { return f.users(1)[0] }

// The method "message" returns a message id that no other test case uses.
func (f *fixture) message() string {
	return fmt.Sprintf("message-%x-%d", process, nextNames.Add(1))
}

// The method "batch" returns a batch for one send to each of the users. The send has no channel, and the rules of the
// batch come from the given limits.
func (f *fixture) batch(message string, users []capping.UserID, limits ...capping.Limit) *capping.Batch {
	rules := make([]capping.Rule, len(limits))
	for i := range limits {
		rules[i] = limits[i].Rule(f.clock.Instant(), 0)
	}
	return &capping.Batch{
		Message: capping.Message{ID: message}, Token: capping.Message{ID: message}.Token(),
		Users: users, Groups: make([]uint8, len(users)), Rules: [][]capping.Rule{rules},
		Record: true, Retention: week,
	}
}

// The method "filter" calls the store's Filter with a batch, and checks that the store decides every user.
func (f *fixture) filter(b *capping.Batch) []capping.Verdict {
	f.Helper()
	verdicts := make([]capping.Verdict, len(b.Users))
	require.NoError(f, f.store.Filter(context.Background(), b, verdicts))
	for i, v := range verdicts {
		if v.Outcome == capping.Unavailable { // the check by require is too slow for 100,000 users
			require.NotEqual(f, capping.Unavailable, v.Outcome, "user %d", b.Users[i])
		}
	}
	return verdicts
}

// The method "send" filters a new message for one user with the given limits, and returns the verdict.
func (f *fixture) send(user capping.UserID, limits ...capping.Limit) capping.Verdict {
	f.Helper()
	return f.filter(f.batch(f.message(), []capping.UserID{user}, limits...))[0]
}

// The function "on" gives the batch (one filter call to a store) a channel, and returns the batch.
func on(b *capping.Batch, channel capping.Channel) *capping.Batch {
	b.Channel = channel
	return b
}

// The function "of" gives the batch's message a namespace, and returns the batch (one filter call to a store).
func of(b *capping.Batch, namespace string) *capping.Batch {
	b.Message.Namespace = namespace
	b.Token = b.Message.Token()
	return b
}

// The method "only" filters a batch with a single user, and returns the verdict of this user.
func (f *fixture) only(b *capping.Batch) capping.Verdict {
	f.Helper()
	return f.filter(b)[0]
}

// The method "log" reads the user's log from the store, and checks the format of the log.
func (f *fixture) log(user capping.UserID) capping.Log {
	f.Helper()
	log, err := f.store.Log(context.Background(), user)
	require.NoError(f, err)
	require.NoError(f, log.Check())
	return log
}

// The method "live" returns the number of entries in the user's log that are younger than one week.
func (f *fixture) live(user capping.UserID) int {
	f.Helper()
	return f.log(user).Live(f.clock.Instant() - capping.Instant(week.Milliseconds())).Len()
}

func (f *fixture) allowed(v capping.Verdict) {
	f.Helper()
	require.Equal(f, capping.Verdict{Outcome: capping.Allowed}, v)
}

func (f *fixture) replayed(v capping.Verdict) {
	f.Helper()
	require.Equal(f, capping.Verdict{Outcome: capping.Replayed}, v)
}

// The method "denied" checks that the verdict is a denial by the rule with the given index, until the given time.
func (f *fixture) denied(v capping.Verdict, rule uint8, until capping.Instant) {
	f.Helper()
	require.Equal(f, capping.Verdict{Outcome: capping.Denied, Rule: rule, FreesAt: until}, v)
}

// The method "all" checks that every verdict (decision about one user) has the given outcome.
func (f *fixture) all(verdicts []capping.Verdict, outcome capping.Outcome) {
	f.Helper()
	for i := range verdicts {
		if verdicts[i].Outcome != outcome {
			require.Equal(f, outcome, verdicts[i].Outcome, "verdict %d", i)
		}
	}
}

func rolling(name string, most int, window time.Duration, channels ...capping.Channel) capping.Limit {
	return capping.Limit{Name: name, Max: most, Window: window, Channels: capping.ChannelSetOf(channels...)}
}

func daily(most int) capping.Limit  { return rolling("daily", most, day) }
func weekly(most int) capping.Limit { return rolling("weekly", most, week) }

func after(i capping.Instant, d time.Duration) capping.Instant {
	return i + capping.Instant(d.Milliseconds())
}
