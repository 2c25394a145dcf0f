//go:build storms

package redisstore

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// dials counts the connections that a store dials, and the connections that are still open.
type dials struct{ dialed, open atomic.Int64 }

func (d *dials) count(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		d.dialed.Add(1)
		d.open.Add(1)
		return &counted{Conn: conn, closed: sync.OnceFunc(func() { d.open.Add(-1) })}, nil
	}
}

type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	c.closed()
	return c.Conn.Close()
}

// SyscallConn lets the pool check whether the server has closed an idle connection.
func (c *counted) SyscallConn() (syscall.RawConn, error) { return c.Conn.(syscall.Conn).SyscallConn() }

// labelled runs a test with a label on all its goroutines, which distinguishes them from those of parallel tests.
func labelled(t *testing.T, test func()) {
	pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(context.Context) { test() })
}

// goroutines counts the goroutines of a labelled test.
func goroutines(t *testing.T) (n int) {
	t.Helper()
	var profile bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	for group := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(group, fmt.Sprintf("%q:%q", "test", t.Name())) {
			continue
		}
		for line := range strings.Lines(group) {
			var alike int
			if got, _ := fmt.Sscanf(line, "%d @", &alike); got == 1 {
				n += alike
			}
		}
	}
	return n
}

// clients returns how many connections the server has open, and how many it has ever accepted.
func clients(t *testing.T, server *redis.Client) (open, accepted int64) {
	t.Helper()
	text, err := server.Info(t.Context(), "everything").Result()
	require.NoError(t, err)
	info := topology.ParseInfo(text)
	return info.Number("connected_clients"), info.Number("total_connections_received")
}

// breaking is a way to break every connection that carries a batch.
type breaking struct {
	attempt    time.Duration // AttemptTimeout
	start, end func()
	broken     func() int64 // connections; nil where each that is dialed breaks
}

// Both ends close a broken connection, however many break, and no goroutine keeps waiting for one.
func TestBrokenConnectionsAreLeftBehindByNobody(t *testing.T) {
	t.Parallel()
	t.Run("cut", func(t *testing.T) {
		t.Parallel()
		labelled(t, func() {
			c, between := testcluster.Single(t, testcluster.Options{}), newProxies(t)
			x := between.to(c.Addrs[0])
			breakConnections(t, c, between.dial, breaking{
				attempt: time.Second, start: func() { x.cut.Store(0) }, end: func() { x.cut.Store(cutNever) },
				broken: x.cuts.Load,
			})
		})
	})
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		labelled(t, func() {
			c := testcluster.Single(t, testcluster.Options{})
			breakConnections(t, c, new(net.Dialer).DialContext, breaking{
				attempt: 20 * time.Millisecond,
				start:   func() { require.NoError(t, c.Pause(c.Addrs[0])) },
				end:     func() { require.NoError(t, c.Resume(c.Addrs[0])) },
			})
		})
	})
}

func breakConnections(t *testing.T, c *testcluster.Cluster, dial dialer, how breaking) {
	t.Helper()
	var d dials
	s := openPatiently(t, Config{
		Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), AttemptTimeout: how.attempt, dial: d.count(dial),
	})
	server, users := admin(t, c.Addrs[0]), spread(100)
	allowed(t, s, users)
	connected, accepted := clients(t, server)
	dialed, running := d.dialed.Load(), goroutines(t)

	const many = 300
	how.start()
	deadline := time.Now().Add(2 * time.Minute)
	for enough := false; !enough; { // on a busy machine a call may end before its connection breaks
		require.True(t, time.Now().Before(deadline), "%d connections were dialed", d.dialed.Load()-dialed)
		require.Error(t, s.Filter(background(t, 20*time.Millisecond), batchOf("a", users),
			make([]capping.Verdict, len(users))))
		enough = d.dialed.Load()-dialed > many && (how.broken == nil || how.broken() > many)
	}
	how.end()

	allowed(t, s, users)
	// The pool may be fuller than before, and holds beyond its size what was dialed for calls that had ended by then;
	// a proxy has two goroutines a connection.
	const most = 2 * poolSize
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		now, _ := clients(t, server)
		assert.LessOrEqual(c, now, connected+most, "clients")
		assert.LessOrEqual(c, d.open.Load(), int64(most), "open connections")
		assert.LessOrEqual(c, goroutines(t), running+2*most, "goroutines")
	}, time.Minute, 20*time.Millisecond)
	_, total := clients(t, server)
	require.Greater(t, total-accepted, int64(many), "connections that the server saw")
	t.Logf("%d dialed, %d open, %d goroutines after %d", d.dialed.Load()-dialed, d.open.Load(), goroutines(t), running)
}

func allowed(t *testing.T, s *Store, users []capping.UserID) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		verdicts := make([]capping.Verdict, len(users))
		return s.Filter(t.Context(), batchOf(namespace(), users), verdicts) == nil &&
			count(verdicts, capping.Allowed) == len(users)
	})
}
