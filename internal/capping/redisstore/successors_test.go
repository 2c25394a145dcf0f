package redisstore

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// inGroup is the hint where managed services keep the settings that a server does not let clients change.
const inGroup = " (of a managed service: in the node's parameter group)"

// A replica is master after the next failover, so its settings count too.
func TestOpenRefusesReplicasThatWouldLoseLogs(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) (Config, string){
		"of a server": func(t *testing.T) (Config, string) {
			c := testcluster.Single(t, testcluster.Options{Replicas: 1})
			return Config{Addrs: c.Addrs[:1]}, c.Addrs[1]
		},
		"of a master behind Sentinels": func(t *testing.T) (Config, string) {
			c := testcluster.Single(t, testcluster.Options{Replicas: 1})
			return Config{Addrs: []string{sentinel(t, c.Addrs[0])}, SentinelMaster: "logs"}, c.Addrs[1]
		},
		"of a cluster": func(t *testing.T) (Config, string) {
			c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: steady})
			return Config{Addrs: c.Addrs[:1]}, c.Addrs[4]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, replica := start(t)
			config = unhurried(config)
			require.Empty(t, openTest(t, config).warnings)
			client := admin(t, replica)
			set := func(name, value string) { require.NoError(t, client.ConfigSet(t.Context(), name, value).Err()) }

			set("maxmemory-policy", "allkeys-lru")
			_, err := openInTime(t, config)
			require.EqualError(t, err, "replica "+replica+
				": maxmemory-policy is allkeys-lru, which silently deletes recorded sends: set it to "+
				"noeviction"+inGroup)

			set("maxmemory-policy", "noeviction")
			set("appendonly", "no")
			_, err = openInTime(t, config)
			require.EqualError(t, err, "replica "+replica+
				": appendonly is no: a restarted master would have no data and delete the data of its replicas: set "+
				"appendonly yes"+inGroup+
				", or allow_no_append_only: true if lost nodes are replaced and never restart empty")
			config.ReplicaAcks = FixedAcks(0)
			require.Contains(t, openTest(t, config).warnings,
				"replica "+replica+": appendonly is no: a restart loses every send since the last snapshot")
		})
	}
}

func TestReplicaThatDoesNotAnswerIsWarnedOf(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 2, Settings: []string{"repl-timeout 60"}})
	require.NoError(t, c.Pause(c.Addrs[1]))
	testkit.Eventually(t, func() bool { // on a busy machine another may not answer in time as well
		s := openTest(t, Config{Addrs: c.Addrs[:1], AttemptTimeout: 400 * time.Millisecond})
		return len(s.warnings) == 1 && strings.Contains(s.warnings[0], "replica "+c.Addrs[1]+": not checked: ")
	})
}

// Settings that only cost memory, or every call, are checked on replicas too.
func TestOpenExaminesReplicasAsMasters(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	replica := admin(t, c.Addrs[1])
	require.NoError(t, replica.ConfigSet(t.Context(), "hash-max-listpack-entries", "64").Err())
	config := unhurried(Config{Addrs: c.Addrs[:1]})
	s := openTest(t, config)
	require.Len(t, s.warnings, 1)
	require.Contains(t, s.warnings[0], "replica "+c.Addrs[1]+": hash-max-listpack-entries is 64")
	config.ClockSkew, config.Clock = 200*time.Millisecond, func() time.Time { return time.Now().Add(time.Hour) }
	_, err := openInTime(t, config)
	for _, who := range []string{"node " + c.Addrs[0], "replica " + c.Addrs[1]} {
		require.ErrorContains(t, err, who+": its clock differs from this machine's by -")
	}
}

// A start has more time than a refresh: it retries a server that did not answer at first.
func TestAStartAsksLateServersAgain(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	var first sync.Once
	s, err := Open(t.Context(), Config{
		Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Timeout: testkit.Patience, Username: leastUser, Password: leastUser,
		dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &lossyConn{conn, "replication", &first}, err
		},
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, 20, count(filter(t, s, batchOf("a", spread(20))), capping.Allowed))
}

// lossyConn loses the first write that contains the word, over any connection.
type lossyConn struct {
	net.Conn
	word  string
	first *sync.Once
}

func (c *lossyConn) Write(bytes []byte) (int, error) {
	lost := false
	if strings.Contains(string(bytes), c.word) {
		c.first.Do(func() { lost = true })
	}
	if lost {
		return len(bytes), nil
	}
	return c.Conn.Write(bytes)
}

// holding delays requests to one server until the other server has answered and the test releases them.
type holding struct {
	on              atomic.Bool
	asked, answered chan struct{} // told once each, while it is on
	release         chan struct{}
	only            string // what is held up holds this; "": all is
	once            [2]sync.Once
	held            atomic.Int64 // writes that were held up
}

func (h *holding) dial(free, held string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &heldConn{conn, h, addr == held, addr == free}, nil
	}
}

type heldConn struct {
	net.Conn
	holding    *holding
	held, free bool
}

func (c *heldConn) Write(bytes []byte) (int, error) {
	if c.held && c.holding.on.Load() && strings.Contains(string(bytes), c.holding.only) {
		c.holding.held.Add(1)
		c.holding.once[0].Do(func() { close(c.holding.asked) })
		<-c.holding.release
	}
	return c.Conn.Write(bytes)
}

func (c *heldConn) Read(bytes []byte) (int, error) {
	n, err := c.Conn.Read(bytes)
	if c.free && c.holding.on.Load() {
		c.holding.once[1].Do(func() { close(c.holding.answered) })
	}
	return n, err
}
