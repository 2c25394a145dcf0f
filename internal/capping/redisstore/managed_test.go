//go:build storms

package redisstore

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/storetest"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// A cluster behind one endpoint may report no host for its nodes, or "?" when names are not announced.
func TestNodesWithoutAHostAreFound(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 1, NodeTimeout: steady})
	for _, kind := range []string{"unknown-endpoint", "hostname"} {
		for _, addr := range c.Addrs {
			require.NoError(t, admin(t, addr).ConfigSet(t.Context(), "cluster-preferred-endpoint-type", kind).Err())
		}
		s := openTest(t, Config{Addrs: c.Addrs[:1]})
		users := spread(640)
		require.Equal(t, 640, count(filter(t, s, batchOf(kind, users)), capping.Allowed), kind)
		for _, n := range s.top.Masters() {
			require.Contains(t, c.Addrs, n.Addr(), kind)
		}
		require.Len(t, s.top.Masters(), 3)

		// A redirection has no host either.
		first := s.top.Masters()[0]
		for p := range s.keyspace.Partitions {
			s.top.Redirect(p, first, first.Addr())
		}
		require.Equal(t, 640, count(filter(t, s, batchOf(kind, users)), capping.Replayed), kind)
		storetest.IsOK(t, s)
	}
}

// Some managed services have no append-only file and replace lost nodes.
func TestServersWithoutAppendOnlyFileNeedAWord(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	for _, addr := range c.Addrs {
		require.NoError(t, admin(t, addr).ConfigSet(t.Context(), "appendonly", "no").Err())
	}
	config := unhurried(Config{Addrs: c.Addrs})
	_, err := openInTime(t, config)
	require.ErrorContains(t, err, "appendonly is no")
	require.ErrorContains(t, err, "parameter group")
	require.ErrorContains(t, err, "allow_no_append_only: true")
	config.WithoutAppendOnly = true
	s := openTest(t, config)
	require.Equal(t, 20, count(filter(t, s, batchOf("a", spread(20))), capping.Allowed))
	warnings := warningsOf(t, s)
	require.Len(t, warnings, 2, "of the master and of its replica")
	require.Contains(t, warnings[0], "so always replace a lost node")

	require.NoError(t, c.Pause(c.Addrs[1]))
	verdicts := make([]capping.Verdict, 20)
	require.Error(t, s.Filter(background(t, 2*time.Second), batchOf("b", spread(20)), verdicts))
	require.Equal(t, 20, count(verdicts, capping.Unavailable), "replicas are waited for as usual")
	require.NoError(t, c.Resume(c.Addrs[1]))
}

// The store reads a changing password again for every connection.
func TestCredentialsAreReadAnew(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{})
	client := admin(t, c.Addrs[0])
	var password atomic.Value
	password.Store(leastUser)
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Credentials: func() (string, string, error) {
		if password.Load() == "" {
			return "", "", errors.New("no token today")
		}
		return leastUser, password.Load().(string), nil
	}})
	filter(t, s, batchOf("a", spread(20)))
	change := func(text string) {
		require.NoError(t, client.Do(t.Context(), "acl", "setuser", leastUser, "resetpass", ">"+text).Err())
		require.NoError(t, client.Do(t.Context(), "client", "kill", "user", leastUser).Err())
	}
	change("second")
	within := background(t, 10*time.Second) // a call tries again until its deadline
	require.ErrorContains(t, s.Filter(within, batchOf("b", spread(20)), make([]capping.Verdict, 20)), "(auth)")
	_, err := s.Log(t.Context(), 0)
	require.ErrorContains(t, err, "WRONGPASS", "nobody is told of an empty log")
	require.ErrorContains(t, s.Erase(t.Context(), 0), "WRONGPASS", "nothing is said to be erased")
	released := make([]capping.Released, 1)
	require.ErrorContains(t, s.Release(t.Context(), capping.Message{ID: "a"}.Token(), 0, []capping.UserID{0}, released),
		"WRONGPASS")
	require.Equal(t, capping.ReleaseUnavailable, released[0])
	password.Store("second")
	require.Equal(t, 20, count(filter(t, s, batchOf("b", spread(20))), capping.Allowed))
	password.Store("")
	change("third")
	within = background(t, 10*time.Second)
	require.ErrorContains(t, s.Filter(within, batchOf("c", spread(20)), make([]capping.Verdict, 20)), "no token today")
}

// A start reports which other service listens at the address of a Redis server.
func TestOpenHintsAtWhatIsWrongWithTheAddress(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	down := testcluster.Start(t, testcluster.Options{})
	require.NoError(t, down.Kill(down.Addrs[1]))
	require.NoError(t, down.Kill(down.Addrs[2]))
	authority := testkit.NewAuthority(t)
	secured := secure(t, authority, server)
	client := admin(t, down.Addrs[0])
	// and stays down: a last sign of life that is read late would make it serve again
	testkit.Eventually(t, func() bool {
		lost := 0
		for node := range strings.Lines(client.ClusterNodes(t.Context()).Val()) {
			if strings.Contains(node, "fail") && strings.Contains(node, " disconnected") {
				lost++
			}
		}
		return lost == 2 && strings.Contains(client.ClusterInfo(t.Context()).Val(), "cluster_state:fail")
	})
	for name, test := range map[string]struct {
		config Config
		hint   string
	}{
		"a web server": {Config{Addrs: []string{web.Listener.Addr().String()}}, "does not answer like Redis"},
		"nobody":       {Config{Addrs: []string{"127.0.0.1:1"}}, "nothing listens at 127.0.0.1:1"},
		"silent": {Config{Addrs: []string{silent.Addr().String()}}, "accepts connections but does not " +
			"answer"},
		"TLS to a plain one": {Config{Addrs: server.Addrs, TLS: authority.Client(t)}, "speaks plain Redis and not TLS"},
		"plain to TLS":       {Config{Addrs: []string{secured}}, "speaks TLS: set tls.enabled: true"},
		"a cluster is down":  {Config{Addrs: down.Addrs[:1]}, "the cluster is down"},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.ReplicaAcks, test.config.Timeout = FixedAcks(0), 5*time.Second
			hints(t, test.config, test.hint)
		})
	}
	_, err = openInTime(t, Config{Addrs: []string{secured}, TLS: testkit.NewAuthority(t).Client(t),
		ReplicaAcks: FixedAcks(0)})
	require.ErrorContains(t, err, "x509: certificate signed by unknown authority")
}

// A server that is out of service is not reported as a cluster without masters.
func TestOpenHintsAtABusyServer(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	keepBusy(t, admin(t, server.Addrs[0]))
	hints(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0), Timeout: time.Second},
		"the node is starting, failing over or out of service")
}

// hints repeats a failing start until its error has the hint. On a busy machine another server than the silent one
// may be late.
func hints(t *testing.T, config Config, hint string) {
	t.Helper()
	testkit.FailsWith(t, hint, func() error {
		_, err := Open(t.Context(), config)
		if hinted := (*HintedError)(nil); errors.As(err, &hinted) {
			return errors.New(hinted.Hint)
		}
		return err
	})
}

// keepBusy makes the server run a script until the end of the test.
func keepBusy(t *testing.T, client *redis.Client) {
	t.Helper()
	require.NoError(t, client.ConfigSet(t.Context(), "busy-reply-threshold", "10").Err())
	var runs sync.WaitGroup
	runs.Go(func() { _ = client.Eval(context.WithoutCancel(t.Context()), "while true do end", nil).Err() })
	t.Cleanup(func() {
		require.NoError(t, client.ScriptKill(context.WithoutCancel(t.Context())).Err())
		runs.Wait()
	})
	testkit.Eventually(t, func() bool {
		return redis.HasErrorPrefix(client.Ping(t.Context()).Err(), "BUSY")
	})
}

func TestCertificatesOfClients(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{})
	authority := testkit.NewAuthority(t)
	addr := secure(t, authority, server)
	require.NoError(t, admin(t, server.Addrs[0]).ConfigSet(t.Context(), "tls-auth-clients", "yes").Err())
	s := openTest(t, Config{Addrs: []string{addr}, TLS: authority.Client(t), ReplicaAcks: FixedAcks(0)})
	filter(t, s, batchOf("a", spread(20)))
	stranger := authority.Client(t)
	stranger.Certificates = nil
	_, err := Open(t.Context(), Config{Addrs: []string{addr}, TLS: stranger, ReplicaAcks: FixedAcks(0)})
	require.Error(t, err, "the server tells why, or cuts the connection first")
}
