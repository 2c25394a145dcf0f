//go:build storms

package rentedtest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore"
	"capper/internal/capping/redisstore/rentedtest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// names is the DNS server of all tests; the stores' dialer resolves names with it.
var names *rentedtest.Names

func TestMain(m *testing.M) {
	redis.SetLogger(silence{})
	var err error
	if names, err = rentedtest.NewNames(); err != nil {
		panic(err)
	}
	net.DefaultResolver = names.Resolver()
	status := testcluster.Run(m)
	names.Close()
	os.Exit(status)
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// user is the user name in deploy/redis.acl, which every test server knows.
const user = "capper"

// try opens a store with that user, and closes the store at the end of the test.
func try(t *testing.T, config redisstore.Config) (*redisstore.Store, error) {
	t.Helper()
	if config.Username == "" && config.Password == "" && config.Credentials == nil {
		config.Username, config.Password = user, user
	}
	var s *redisstore.Store
	err := testkit.InTime(func() (err error) {
		s, err = redisstore.Open(t.Context(), config)
		return err
	})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return s, err
}

func open(t *testing.T, config redisstore.Config) *redisstore.Store {
	t.Helper()
	s, err := try(t, config)
	require.NoError(t, err)
	return s
}

// refused returns the error and the hint of a store that fails to start.
func refused(t *testing.T, config redisstore.Config) (text, hint string) {
	t.Helper()
	_, err := try(t, config)
	require.Error(t, err)
	var hinted *redisstore.HintedError
	if errors.As(err, &hinted) {
		hint = hinted.Hint
	}
	return err.Error(), hint
}

// admin returns a Redis client for commands that a store never sends.
func admin(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		DialTimeout: testkit.Patience, ReadTimeout: testkit.Patience})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func set(t *testing.T, addr, name, value string) {
	t.Helper()
	require.NoError(t, admin(t, addr).ConfigSet(t.Context(), name, value).Err())
}

// users returns 640 users in many partitions.
func users() []capping.UserID {
	all := make([]capping.UserID, 640)
	for i := range all {
		all[i] = capping.UserID(i * 1900)
	}
	return all
}

// decide filters a message to all users within five seconds, and returns the number of users by
// outcome.
func decide(t *testing.T, s *redisstore.Store, message string) map[capping.Outcome]int {
	t.Helper()
	return decideWithin(t, s, message, 5*time.Second)
}

func decideWithin(t *testing.T, s *redisstore.Store, message string, patience time.Duration) map[capping.Outcome]int {
	t.Helper()
	everybody := users()
	verdicts := make([]capping.Verdict, len(everybody))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_ = s.Filter(ctx, &capping.Batch{
		Message: capping.Message{ID: message}, Token: capping.Message{ID: message}.Token(), Users: everybody,
		Groups: make([]uint8, len(everybody)),
		Rules:  [][]capping.Rule{{{Max: 1, Hold: time.Hour.Milliseconds()}}}, Record: true, Retention: 24 * time.Hour,
	}, verdicts)
	outcomes := map[capping.Outcome]int{}
	for _, v := range verdicts {
		outcomes[v.Outcome]++
	}
	return outcomes
}

// decides checks that every user is allowed one message and denied a second one.
func decides(t *testing.T, s *redisstore.Store) {
	t.Helper()
	require.Equal(t, map[capping.Outcome]int{capping.Allowed: 640}, decideWithin(t, s, "first", testkit.Patience))
	require.Equal(t, map[capping.Outcome]int{capping.Denied: 640}, decideWithin(t, s, "second", testkit.Patience))
}

// stillDecides waits until every user is decided again, with the recorded sends.
func stillDecides(t *testing.T, s *redisstore.Store) {
	t.Helper()
	testkit.Eventually(t, func() bool { return decide(t, s, "later")[capping.Unavailable] == 0 })
	require.Equal(t, map[capping.Outcome]int{capping.Denied: 640}, decideWithin(t, s, "later", testkit.Patience))
}

// leastRights returns the rules in deploy/redis.acl, without the user and the password.
func leastRights(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../../deploy/redis.acl")
	require.NoError(t, err)
	_, line, _ := strings.Cut(string(text), "user capper on >CHANGE-ME ")
	return strings.Fields(line)
}

// allow sets the user's rights to exactly these rules.
func allow(t *testing.T, addr string, rules ...string) {
	t.Helper()
	args := []any{"acl", "setuser", user, "reset", "on", ">" + user}
	for _, rule := range rules {
		args = append(args, rule)
	}
	require.NoError(t, admin(t, addr).Do(t.Context(), args...).Err())
}
