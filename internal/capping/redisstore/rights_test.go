package redisstore

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// leastRights returns the rules of deploy/redis.acl, without the user and the password.
func leastRights(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/redis.acl")
	require.NoError(t, err)
	_, line, found := strings.Cut(string(text), "user capper on >CHANGE-ME ")
	require.True(t, found)
	return strings.Fields(line)
}

// without removes rights from the server's least user, who keeps the password.
func without(t *testing.T, client *redis.Client, rules ...string) {
	t.Helper()
	args := []any{"acl", "setuser", leastUser}
	for _, rule := range append(leastRights(t), rules...) {
		args = append(args, rule)
	}
	require.NoError(t, client.Do(t.Context(), args...).Err())
}

// The trial script runs the same commands as the other scripts.
func TestTrialsAreTheCommandsOfTheScripts(t *testing.T) {
	t.Parallel()
	calls := regexp.MustCompile(`\b(?:call|try|pcall)\('([A-Z]+)'`)
	commands := func(sources ...string) (names []string) {
		for _, source := range sources {
			for _, match := range calls.FindAllStringSubmatch(source, -1) {
				names = append(names, match[1])
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	s := script.NewScripts(script.Standard)
	text := func(file string) string {
		read, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(read)
	}
	used := []string{text("topology/sign.lua")}
	for _, one := range s.All() {
		used = append(used, one.Source)
	}
	require.GreaterOrEqual(t, len(commands(used...)), 11)
	require.Equal(t, commands(used...), commands(text("topology/rights.lua")))
}

func TestOpenRefusesLackingRightsAsAList(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*testcluster.Cluster{
		"a server":  testcluster.Single(t, testcluster.Options{Replicas: 1}),
		"a cluster": testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: steady}),
	} {
		config := unhurried(Config{Addrs: c.Addrs, Username: leastUser, Password: leastUser})
		client := admin(t, c.Addrs[0])
		open := func() error {
			s, err := openInTime(t, config)
			if err == nil {
				require.NoError(t, s.Close())
			}
			return err
		}
		require.NoError(t, open(), name)
		for _, rule := range leastRights(t) {
			command, isCommand := strings.CutPrefix(rule, "+")
			if !isCommand || command == "config|get" || command == "acl|dryrun" || command == "role" ||
				strings.HasPrefix(command, "cluster|") && name == "a server" || command == "asking" &&
				name == "a server" {
				continue
			}
			without(t, client, "-"+command)
			require.ErrorContains(t, open(), `the Redis user "capper" may not run `+command+":", "%s without %s", name,
				command)
		}
		without(t, client, "-hmget", "-pexpire", "-set", "-wait")
		require.ErrorContains(t, open(),
			`the Redis user "capper" may not run set, hmget, pexpire, wait: the file deploy/redis.acl lists the `+
				`required permissions`)
		without(t, client, "resetkeys", "~other:*")
		require.ErrorContains(t, open(), `the Redis user "capper" may not use the keys fc:*`)
		without(t, client)
		require.NoError(t, open(), name)

		require.NoError(t, admin(t, c.Addrs[len(c.Addrs)-1]).Do(t.Context(), "acl", "setuser", leastUser,
			"-hset").Err())
		require.ErrorContains(t, open(), `replica `+c.Addrs[len(c.Addrs)-1]+`: the Redis user "capper" may not run hset`,
			name)
		for _, addr := range c.Addrs {
			require.Empty(t, admin(t, addr).Keys(t.Context(), "*RIGHTS*").Val(), "the trials leave nothing behind")
		}
	}
}

// An upgrade may come before its new right: without the right the store uses the number of replicas alone.
func TestTheRightToAskForReplicasMayLack(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	config := unhurried(Config{Addrs: c.Addrs[:1], Username: leastUser, Password: leastUser})
	client := admin(t, c.Addrs[0])
	without(t, client, "-role")
	const what = `: the user "capper" may not run role: `
	s := openTest(t, config)
	require.Len(t, s.warnings, 1)
	require.Contains(t, s.warnings[0], "node "+c.Addrs[0]+what)
	require.Equal(t, 20, count(filter(t, s, batchOf("a", spread(20))), capping.Allowed))

	fixed := config
	fixed.ReplicaAcks = FixedAcks(1)
	require.Empty(t, openTest(t, fixed).warnings, "a number is a number")

	without(t, client)
	require.Empty(t, openTest(t, config).warnings)
	s = openTest(t, config)
	without(t, client, "-role")
	require.Equal(t, 20, count(filter(t, s, batchOf("b", spread(20))), capping.Allowed),
		"it is taken away while the store runs")
	require.NoError(t, admin(t, c.Addrs[1]).Do(t.Context(), "acl", "setuser", leastUser, "-role").Err())
	require.Contains(t, strings.Join(openTest(t, config).warnings, "\n"), "replica "+c.Addrs[1]+what)
}

// A right that is removed from a running store makes users unavailable. The error names the right, and nothing is
// deleted.
func TestRightsThatAreTakenAwayAreTold(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	client, users := admin(t, c.Addrs[0]), spread(20)
	daily := rolling(1, time.Hour)
	require.Equal(t, 20, count(filter(t, s, batchOf("a", users, daily)), capping.Allowed))
	for _, command := range []string{"hmget", "hset", "pexpire", "time", "evalsha"} {
		without(t, client, "-"+command)
		verdicts := make([]capping.Verdict, len(users))
		if command == "time" || command == "pexpire" { // not used by every call
			s.top.Route(0).VetSoon()
		} else {
			err := s.Filter(t.Context(), batchOf("b "+command, users, rolling(100, time.Hour)), verdicts)
			require.ErrorContains(t, err, "20 users undecided (auth)", command)
			require.NotContains(t, err.Error(), "delete")
			require.Equal(t, 20, count(verdicts, capping.Unavailable), command)
		}
		testkit.Eventually(t, func() bool {
			h := s.Health(t.Context())
			return h.State == "degraded" && strings.Contains(h.Error, `the Redis user "capper" may not run `+command)
		}, command)
		without(t, client)
	}
	without(t, client, "-hmget", "-hdel")
	released := make([]capping.Released, len(users))
	require.ErrorContains(t, s.Release(t.Context(), capping.Message{ID: "a"}.Token(), 0, users, released), "(auth)")
	require.ErrorContains(t, s.Erase(t.Context(), users[0]), "(auth)")
	without(t, client)
	require.Equal(t, 20, count(filter(t, s, batchOf("c", users, daily)), capping.Denied), "nothing is lost")
}

// A restored right disappears from the status within seconds, and the status is ok where no call failed.
func TestARepairedRightIsPast(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]int{"of a master": 0, "of a replica": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testcluster.Single(t, testcluster.Options{Replicas: 1})
			s := openTest(t, unhurried(Config{Addrs: c.Addrs[:1]}))
			client, master := admin(t, c.Addrs[at]), s.top.Route(0)
			without(t, client, "-evalsha")
			if at == 0 {
				verdicts := make([]capping.Verdict, 20)
				require.ErrorContains(t, s.Filter(t.Context(), batchOf("a", spread(20), rolling(1, time.Hour)),
					verdicts), "(auth)")
			} else {
				master.VetSoon()
			}
			const what = `the Redis user "capper" may not run evalsha`
			testkit.Eventually(t, func() bool {
				h := s.Health(t.Context())
				return h.State == "degraded" && strings.Contains(h.Error, what) &&
					!strings.Contains(h.Error, "within the last")
			})
			without(t, client)
			testkit.Eventually(t, func() bool { // the text of a breach first, and then nothing or the past
				h := s.Health(t.Context())
				return h.State == "ok" || strings.HasPrefix(h.Error, "error within the last 30s: ")
			})
		})
	}
}

// Without the right to read sentinel keys the store allows no user, and the error names the right.
func TestSignsThatCannotBeReadAllowNobody(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	client, users := admin(t, c.Addrs[0]), spread(200)
	require.Equal(t, 200, count(filter(t, s, batchOf("a", users, rolling(1, time.Hour))), capping.Allowed))
	without(t, client, "-get")
	require.NoError(t, client.FlushAll(t.Context()).Err())
	verdicts := make([]capping.Verdict, len(users))
	require.ErrorContains(t, s.Filter(t.Context(), batchOf("b", users, rolling(1, time.Hour)), verdicts), "(auth)")
	require.Equal(t, 200, count(verdicts, capping.Unavailable))
	testkit.Eventually(t, func() bool {
		h := s.Health(t.Context())
		return h.State != "ok" && strings.Contains(h.Error, "may not run get")
	})
	without(t, client)
	testkit.Eventually(t, func() bool { return s.Health(t.Context()).State == "down" }, "it was emptied")
}

// The next write sets a key's TTL that could not be set before.
func TestTTLsThatCouldNotBeSetAreSetLater(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	client, users := admin(t, c.Addrs[0]), spread(200)
	without(t, client, "-pexpire")
	verdicts := make([]capping.Verdict, len(users))
	require.ErrorContains(t, s.Filter(t.Context(), batchOf("a", users), verdicts), "(auth)")
	require.Equal(t, 200, count(verdicts, capping.Unavailable))
	without(t, client)
	filter(t, s, batchOf("b", users))
	for _, user := range users {
		_, key, _ := s.key(user)
		require.Greater(t, client.PTTL(t.Context(), key).Val(), time.Hour, key)
	}
}

// Without the shared records no instance knows how long sends are needed.
func TestBeatsThatFailAreTold(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, c.Addrs[0])
	key := s.marker.Key + ":retentions"
	require.NoError(t, client.Del(t.Context(), key).Err())
	require.NoError(t, client.Set(t.Context(), key, "no hash", time.Hour).Err())
	require.Eventually(t, func() bool {
		h := s.Health(t.Context())
		return h.State == "degraded" && strings.Contains(h.Error,
			"the records that capper instances share in Redis (keys "+s.marker.Key+
				":*) have not been renewed since") &&
			strings.Contains(h.Error, "WRONGTYPE")
	}, testkit.Patience, 100*time.Millisecond)
	require.NoError(t, client.Del(t.Context(), key).Err())
	require.Eventually(t, func() bool { return s.Health(t.Context()).State == "ok" }, 2*time.Minute,
		50*time.Millisecond)
}
