//go:build storms

package rentedtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore"
	"capper/internal/capping/storetest"
	"capper/internal/messages/messagestest"
	"capper/internal/pacing"
	"capper/internal/pacing/pacingtest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

var alone = redisstore.FixedAcks(0)

// TestTheSuitesPassWithTheLeastRights checks that all store test suites pass when only the user of
// deploy/redis.acl can log in, and the servers record no permission error.
func TestTheSuitesPassWithTheLeastRights(t *testing.T) {
	t.Parallel()
	// a busy machine is no reason to fail over, or to repeat an attempt
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: 15 * time.Second})
	for _, addr := range c.Addrs {
		client := admin(t, addr)
		require.NoError(t, client.Do(t.Context(), "acl", "setuser", "auditor", "reset", "on", ">auditor", "+acl|log",
			"+acl|whoami").Err())
		require.NoError(t, client.Do(t.Context(), "acl", "log", "reset").Err())
		require.NoError(t, client.Do(t.Context(), "acl", "setuser", "default", "off").Err())
	}
	opened := func(t *testing.T, clock func() time.Time) *redisstore.Store {
		return open(t, redisstore.Config{Addrs: c.Addrs, Namespace: testkit.Namespace(), Clock: clock,
			AttemptTimeout: 30 * time.Second})
	}
	t.Run("suites", func(t *testing.T) {
		t.Run("logs", func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T, clock func() time.Time) capping.Store { return opened(t, clock) })
		})
		t.Run("pacers", func(t *testing.T) {
			t.Parallel()
			pacingtest.Run(t, func(t *testing.T) pacing.Store { return opened(t, nil) })
		})
		t.Run("campaigns", func(t *testing.T) {
			t.Parallel()
			messagestest.Run(t, func(t *testing.T, clock func() time.Time) messagestest.Store {
				return opened(t,
					clock)
			})
		})
	})
	for _, addr := range c.Addrs {
		auditor := redis.NewClient(&redis.Options{Addr: addr, Username: "auditor", Password: "auditor", Protocol: 2,
			DisableIdentity: true, DialTimeout: testkit.Patience, ReadTimeout: testkit.Patience})
		entries, err := auditor.Do(t.Context(), "acl", "log").Slice()
		require.NoError(t, err)
		require.NoError(t, auditor.Close())
		for _, entry := range entries {
			require.NotEqual(t, user, field(entry, "username"), "%v", entry)
		}
		require.Error(t, admin(t, addr).Ping(t.Context()).Err(), "nobody else may do anything")
	}
}

// field returns the value of a name in a flat list of names and values.
func field(list any, name string) any {
	pairs, _ := list.([]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == name {
			return pairs[i+1]
		}
	}
	return nil
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
		require.Contains(t, text, "node "+c.Addrs[0]+": does not know ")
		require.Contains(t, text, "remove rename-command for these commands")
		for _, command := range commands {
			require.Contains(t, text, strings.ToLower(command))
		}
		require.NotContains(t, text, "deploy/redis.acl", "it is no matter of rights")
	}
}
