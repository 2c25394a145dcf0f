package redisstore

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // before any client is made: dead nodes are this package's daily bread
	// Tests here mostly wait for nodes, not for processors. The command line's -parallel is read later, and goes
	// before.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	// The client library's redials of a dead node end a second after their pool.
	os.Exit(testkit.NoLeaks(testcluster.Run(m)))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// namespace is one that no other test of a shared cluster uses.
func namespace() string { return testkit.Namespace() }

// leastUser is the user of deploy/redis.acl, whom every test server knows.
const leastUser = "capper"

// openShared is a store of its own namespace on the shared cluster.
func openShared(t testing.TB, change func(*Config)) *Store {
	t.Helper()
	config := Config{Addrs: testcluster.Shared(t), Namespace: namespace()}
	if change != nil {
		change(&config)
	}
	return openTest(t, config)
}

// openTest is a store whose user has the least rights, where the config names none.
func openTest(t testing.TB, config Config) *Store {
	t.Helper()
	if config.Username == "" && config.Password == "" {
		config.Username, config.Password = leastUser, leastUser
	}
	s, err := openInTime(t, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// openPatiently opens a store as soon as that is possible: a server that was started again has no replica at
// first, and a busy one may be late for short attempts.
func openPatiently(t testing.TB, config Config) (s *Store) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		opened, err := openInTime(t, config)
		s = opened
		return err == nil
	})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// allDenied requires that the users come off as denied once a server that was started again has its replicas
// back, and that nobody is allowed until then.
func allDenied(t testing.TB, s *Store, message string, users []capping.UserID) {
	t.Helper()
	allowed, verdicts := 0, make([]capping.Verdict, len(users))
	testkit.Eventually(t, func() bool {
		looked(t, s)
		_ = s.Filter(background(t, testkit.Patience), batchOf(message, users, rolling(1, week)), verdicts)
		allowed += count(verdicts, capping.Allowed)
		return count(verdicts, capping.Denied) == len(users)
	})
	require.Zero(t, allowed)
}

// openInTime opens a store: the first look at the servers is a short one.
func openInTime(t testing.TB, config Config) (s *Store, err error) {
	t.Helper()
	err = testkit.InTime(func() (err error) {
		s, err = Open(t.Context(), config)
		return err
	})
	return s, err
}

// unhurried leaves servers the time that a busy machine takes: a start goes on without what it could
// not check.
func unhurried(config Config) Config {
	config.AttemptTimeout, config.Timeout = 10*time.Second, testkit.Patience
	return config
}

// warningsOf are those of Health, but for the one that a new store has.
func warningsOf(t *testing.T, s *Store) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(s.Health(t.Context()).Warnings), func(warning string) bool {
		return strings.HasPrefix(warning, "the store was created at this start")
	})
}

// clock is a clock that tests set, also by instants of the logs.
type clock struct{ *testkit.Clock }

func newClock() *clock { return &clock{testkit.NewClock()} }

func (c *clock) now() time.Time           { return c.Now() }
func (c *clock) advance(d time.Duration)  { c.Advance(d) }
func (c *clock) instant() capping.Instant { return capping.InstantOf(c.Now()) }
func (c *clock) set(at capping.Instant)   { c.Set(at.Time()) }

func rolling(max int, d time.Duration) capping.Rule {
	return capping.Rule{Max: max, Hold: d.Milliseconds()}
}

// batchOf is a recording batch of one group.
func batchOf(message string, users []capping.UserID, rules ...capping.Rule) *capping.Batch {
	return &capping.Batch{
		Message: capping.Message{ID: message}, Token: capping.Message{ID: message}.Token(), Users: users,
		Groups: make([]uint8, len(users)),
		Rules:  [][]capping.Rule{rules}, Record: true, Retention: 7 * 24 * time.Hour,
	}
}

func filter(t testing.TB, s *Store, b *capping.Batch) []capping.Verdict {
	t.Helper()
	verdicts := make([]capping.Verdict, len(b.Users))
	require.NoError(t, s.Filter(t.Context(), b, verdicts))
	return verdicts
}

// steady is the node time-out of a cluster that has nothing to fail over for, however busy the machine is.
const steady = 15 * time.Second

// admin is a client for what a store does not do.
func admin(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: testkit.Patience, ReadTimeout: testkit.Patience, WriteTimeout: testkit.Patience,
		PoolTimeout: testkit.Patience,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// owner is an admin client of the master that holds the user.
func owner(t testing.TB, s *Store, user capping.UserID) *redis.Client {
	t.Helper()
	partition, _, _ := s.key(user)
	return admin(t, s.top.Route(partition).Addr())
}

// beginAnew makes emptied servers usable again, as a restart of capper does.
func beginAnew(t testing.TB, stores ...*Store) {
	t.Helper()
	for _, s := range stores {
		require.NoError(t, s.fleet.start(t.Context()))
	}
}

func background(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func count(verdicts []capping.Verdict, o capping.Outcome) (n int) {
	for _, v := range verdicts {
		if v.Outcome == o {
			n++
		}
	}
	return n
}
