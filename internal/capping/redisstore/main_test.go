package redisstore

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // before any client is made: dead nodes are this package's daily bread
	// Tests here mostly wait for nodes, not for processors. The command line's -parallel is read later, and goes before.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	status := testcluster.Run(m)
	err := goleak.Find()
	if err != nil { // the client library's redials of a dead node end a second after their pool
		err = goleak.Find()
	}
	if err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
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
	s, err := Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// warningsOf are those of Health, but for the one that a new store has.
func warningsOf(t *testing.T, s *Store) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(s.Health(t.Context()).Warnings), func(warning string) bool {
		return strings.HasPrefix(warning, "the store was made at this start")
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
		Message: capping.Message{ID: message}, Token: capping.TokenOf(message), Users: users, Groups: make([]uint8, len(users)),
		Rules: [][]capping.Rule{rules}, Record: true, Retention: 7 * 24 * time.Hour,
	}
}

func filter(t testing.TB, s *Store, b *capping.Batch) []capping.Verdict {
	t.Helper()
	verdicts := make([]capping.Verdict, len(b.Users))
	require.NoError(t, s.Filter(t.Context(), b, verdicts))
	return verdicts
}

// admin is a client for what a store does not do.
func admin(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ContextTimeoutEnabled: true})
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

// punctual is by how much an answer may be late: 50 ms, and what this machine
// was late itself while it did nothing but wait.
type punctual struct {
	late atomic.Int64
	stop chan struct{}
}

func newPunctual(t testing.TB) *punctual {
	p := &punctual{stop: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			began := time.Now()
			select {
			case <-p.stop:
				return
			case <-time.After(5 * time.Millisecond):
				p.late.Store(max(p.late.Load(), int64(time.Since(began)-5*time.Millisecond)))
			}
		}
	}()
	t.Cleanup(func() {
		close(p.stop)
		<-done
	})
	return p
}

func (p *punctual) bound() time.Duration { return 50*time.Millisecond + time.Duration(p.late.Load()) }
