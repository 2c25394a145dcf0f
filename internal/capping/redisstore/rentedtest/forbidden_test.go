//go:build storms

package rentedtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping/redisstore"
	"capper/internal/pacing"
	"capper/internal/testcluster"
)

var alone = redisstore.FixedAcks(0)

// TestTheLeastRightsAreEnoughAlone checks that a store works when only the user of deploy/redis.acl can log in. The
// suites of the store use this user, too, and check that the servers forbid it nothing.
func TestTheLeastRightsAreEnoughAlone(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: 15 * time.Second})
	for _, addr := range c.Addrs {
		require.NoError(t, admin(t, addr).Do(t.Context(), "acl", "setuser", "default", "off").Err())
		require.Error(t, admin(t, addr).Ping(t.Context()).Err(), "nobody else may do anything")
	}
	s := open(t, redisstore.Config{Addrs: c.Addrs, AttemptTimeout: 30 * time.Second})
	decides(t, s)
	grant, err := s.TakePermits(t.Context(), &pacing.Ask{Permits: 1, Targets: []pacing.Target{{Pacer: "carrier",
		Limits: []pacing.Limit{{Max: 1, Window: time.Hour}}}}})
	require.NoError(t, err)
	require.Equal(t, 1, grant.Granted)
}

// TestRightsByKeysAndSelectors checks that the store refuses a user with read rights only, and
// accepts rights in ACL selectors.
func TestRightsByKeysAndSelectors(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	config := redisstore.Config{Addrs: c.Addrs, ReplicaAcks: alone}
	rights := leastRights(t)

	allow(t, c.Addrs[0], "resetchannels", "~fc:*", "-@all", "+@read", "+@connection", "+info", "+time", "+wait",
		"+evalsha", "+script|load")
	text, _ := refused(t, config)
	require.Contains(t, text, `node `+c.Addrs[0]+
		`: the Redis user "capper" may not run set, setrange, zadd, zremrangebyscore, hdel, pexpire, del`)
	require.Contains(t, text, "deploy/redis.acl")

	if keyRights(t, c.Addrs[0]) {
		readOnly := strings.Split(strings.Replace(strings.Join(rights, " "), "~fc:*", "%R~fc:*", 1), " ")
		allow(t, c.Addrs[0], readOnly...)
		text, _ = refused(t, config)
		require.Contains(t, text, `the Redis user "capper" may not use the keys fc:* to read and to write`)

		allow(t, c.Addrs[0], "resetchannels", "-@all", "+time", "+info", "+script|load", "+evalsha", "+wait",
			"(%RW~fc:* "+strings.Join(rights[2:], " ")+")")
		decides(t, open(t, config))
	}
}

// keyRights reports whether the server supports separate rights to read and to write keys, as Redis
// does since version 7.
func keyRights(t *testing.T, addr string) bool {
	return admin(t, addr).Do(t.Context(), "acl", "setuser", "trial", "%R~fc:*").Err() == nil
}

// TestCommandsThatAreRenamed checks that an error names each required command that a provider has
// renamed, with a solution. Other commands may be missing.
func TestCommandsThatAreRenamed(t *testing.T) {
	t.Parallel()
	gone := func(commands ...string) (lines []string) {
		for _, command := range commands {
			lines = append(lines, "rename-command "+command+` ""`)
		}
		return lines
	}
	c := testcluster.Single(t, testcluster.Options{Settings: gone(
		"CONFIG", "CLIENT", "HELLO", "DEBUG", "KEYS", "SCAN", "FLUSHALL", "FLUSHDB", "SHUTDOWN", "MONITOR", "SAVE",
		"BGSAVE",
		"BGREWRITEAOF", "SLOWLOG", "MEMORY", "LATENCY", "MIGRATE", "EVAL", "SUBSCRIBE", "OBJECT", "DUMP", "SORT",
		"SELECT", "RENAME",
	)})
	s := open(t, redisstore.Config{Addrs: c.Addrs, ReplicaAcks: alone})
	decides(t, s)
	warnings := strings.Join(s.Health(t.Context()).Warnings, "\n")
	require.Contains(t, warnings, "hides hash-max-listpack-entries")
	require.NotContains(t, warnings, "maxmemory-policy", "INFO tells it")

	for _, commands := range [][]string{{"EVALSHA"}, {"SCRIPT"}, {"INFO"}, {"HMGET", "TIME"},
		{"PEXPIRE", "DEL", "WAIT"}} {
		c := testcluster.Single(t, testcluster.Options{Settings: gone(commands...), Replicas: 0})
		text, _ := refused(t, redisstore.Config{Addrs: c.Addrs, ReplicaAcks: redisstore.Healthy})
		require.Contains(t, text, "node "+c.Addrs[0]+" does not know ")
		require.Contains(t, text, "remove rename-command for these commands")
		for _, command := range commands {
			require.Contains(t, text, strings.ToLower(command))
		}
		require.NotContains(t, text, "deploy/redis.acl", "it is no matter of rights")
	}
}
