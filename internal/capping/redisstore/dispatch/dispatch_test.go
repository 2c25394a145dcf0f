package dispatch

import (
	"io"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.NoLeaks(m.Run())) }

// dispatcher returns a Dispatcher for the servers at addrs, which may be empty.
func dispatcher(t *testing.T, addrs []string) (d *Dispatcher, prefixes []string) {
	t.Helper()
	namespace, keyspace := testkit.Namespace(), script.Standard
	var partitions []topology.Partition
	for p, prefix := range keyspace.Prefixes(namespace) {
		prefixes = append(prefixes, prefix)
		partitions = append(partitions, topology.Partition{Slot: keyspace.Slot(p), Prefix: prefix})
	}
	top := topology.New(topology.Config{
		Options:     topology.Options{Addrs: addrs, AttemptTimeout: time.Second, Connections: Lanes + 4},
		ReplicaAcks: topology.FixedAcks(0), Namespace: namespace, Partitions: partitions,
		Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	d = New(Config{Topology: top, Keyspace: keyspace, Timeout: 30 * time.Second, Clock: time.Now})
	t.Cleanup(func() {
		require.NoError(t, top.Close())
		d.Wait()
	})
	if addrs != nil {
		require.NoError(t, testkit.InTime(func() error { _, err := top.Discover(t.Context()); return err }))
		top.Run()
	}
	return d, prefixes
}

// echo is an Operation that sets a key of the partition for its items and counts the answered
// items.
type echo struct {
	prefixes []string
	answered int
}

func (e *echo) Encode(c *Command) {
	c.Args.Set("set", e.prefixes[c.Partition]+"echo", strconv.Itoa(len(c.Items)))
}

func (e *echo) Stamp(*Command, Stamp) {}

func (e *echo) Apply(c *Command) (int, error) {
	e.answered += len(c.Items)
	return len(c.Items), nil
}

// TestUsersWhoseRouteChangesAreNotForgotten checks that users are not forgotten when their
// partition moves to a master that the run has already served.
func TestUsersWhoseRouteChangesAreNotForgotten(t *testing.T) {
	t.Parallel()
	d, prefixes := dispatcher(t, testcluster.Start(t, testcluster.Options{}).Addrs)
	here, there := 0, 0
	for p := range prefixes {
		if d.top.Route(p) != d.top.Route(here) {
			there = p
		}
	}
	a, b := d.top.Route(here), d.top.Route(there)
	op := &echo{prefixes: prefixes}
	r := d.NewRun(op, true)
	r.front(a) // like a run that is used again
	r.front(b)
	r.AddUsers([]capping.UserID{capping.UserID(uint32(there) * script.Standard.BucketSize)}, MostUsers)
	d.top.Redirect(there, a, a.Addr()) // as after a MOVED reply
	r.Do(t.Context())
	require.NoError(t, r.Faults.Err())
	require.Equal(t, 1, op.answered, "the node says where the slot is")
}

// TestSendersOfForgottenNodesAreDropped checks that the dispatcher removes the senders of forgotten
// nodes and keeps all other senders.
func TestSendersOfForgottenNodesAreDropped(t *testing.T) {
	t.Parallel()
	d, _ := dispatcher(t, testcluster.Start(t, testcluster.Options{}).Addrs)
	stranger, _ := dispatcher(t, testcluster.Single(t, testcluster.Options{}).Addrs)
	gone, known := stranger.top.Route(0), d.top.Masters()
	d.sender(gone)
	kept := d.sender(known[0])
	d.sender(known[1])
	require.Same(t, kept, d.sender(known[0]))
	_, held := d.senders.Load(gone)
	require.False(t, held)
	require.Nil(t, d.sender(nil))
}

// TestNothingIsSentForACallerWhoHasLeft checks that a run whose caller leaves sends no further attempts, and keeps the
// replies to sent commands.
func TestNothingIsSentForACallerWhoHasLeft(t *testing.T) {
	t.Parallel()
	cluster := testcluster.Start(t, testcluster.Options{})
	d, prefixes := dispatcher(t, cluster.Addrs)
	here, there := 0, 0
	for p := range prefixes {
		if d.top.Route(p) != d.top.Route(here) {
			there = p
		}
	}
	user := func(p int) capping.UserID { return capping.UserID(uint32(p) * script.Standard.BucketSize) }
	down := d.top.Route(there).Addr()
	require.NoError(t, cluster.Kill(down))
	op := &echo{prefixes: prefixes}
	r := d.NewRun(op, false)
	r.AddUsers([]capping.UserID{user(here), user(there)}, MostUsers)
	gone := make(chan struct{})
	leaves := time.AfterFunc(300*time.Millisecond, func() { close(gone) }) // between attempts at the killed node
	defer leaves.Stop()
	r.Do(capping.WithCaller(t.Context(), capping.Caller{Gone: gone}))
	require.ErrorContains(t, r.Faults.Err(), "1 users undecided (gone)")
	require.Equal(t, map[fault.Kind]int{fault.Gone: 1}, r.Faults.Users)
	require.Equal(t, 1, op.answered)
	require.NoError(t, cluster.Restart(down))
	testkit.Eventually(t, func() bool {
		again := d.NewRun(&echo{prefixes: prefixes}, false)
		again.AddUsers([]capping.UserID{user(here)}, MostUsers)
		again.Do(t.Context())
		return again.Faults.Err() == nil
	})
	left := d.NewRun(op, false)
	left.AddUsers([]capping.UserID{user(here)}, MostUsers)
	left.Do(capping.WithCaller(t.Context(), capping.Caller{Gone: gone}))
	require.ErrorIs(t, left.Faults.Err(), capping.ErrCallerGone)
	require.Equal(t, 1, op.answered, "a run that begins too late sends nothing")
}

// errorReply is an error reply of a Redis server.
type errorReply string

func (e errorReply) Error() string { return string(e) }
func (errorReply) RedisError()     {}

func TestRemediesOfAttempts(t *testing.T) {
	t.Parallel()
	require.Equal(t, fault.Remedy{Kind: fault.Lost, Refresh: true}, fault.Of(&errUnsent{io.EOF}))
}

// TestFailedAttemptsOfOtherKindsDoNotGiveUsersUp checks that only errors without a remedy count
// towards giving up a command.
func TestFailedAttemptsOfOtherKindsDoNotGiveUsersUp(t *testing.T) {
	t.Parallel()
	d, _ := dispatcher(t, nil)
	r := d.NewRun(nil, false)
	c := &Command{run: r, since: capping.Never}
	for range 10 {
		c.attempt.err = errorReply("NOREPLICAS not enough good replicas to write")
		r.settle(c)
		require.Zero(t, r.Faults.Users[fault.Acks])
	}
	for n := range maxServerTries {
		require.Zero(t, r.Faults.Users[fault.Server], "after %d", n)
		c.attempt.err = errorReply("ERR what is this")
		r.settle(c)
	}
	require.Equal(t, 1, r.Faults.Users[fault.Server])
}

// TestTheSignBehindAPipelineIsOfAPartitionOfTheNode checks that the sentinel key at the end of a
// pipeline belongs to a partition of the node, not to a slot that the node is still importing.
func TestTheSignBehindAPipelineIsOfAPartitionOfTheNode(t *testing.T) {
	t.Parallel()
	d, _ := dispatcher(t, nil)
	s := &sender{top: d.top}
	asked := func(partitions ...int) (commands []*Command) {
		for _, p := range partitions {
			c := &Command{Partition: max(p, -p)}
			c.attempt.asking = p < 0
			commands = append(commands, c)
		}
		return commands
	}
	require.Equal(t, 2, s.witness(asked(1, 2)))
	require.Equal(t, 2, s.witness(asked(1, 2, -3)))
	require.Equal(t, 3, s.witness(asked(-2, -3)))
	require.Equal(t, []int{1, 2}, owned(asked(1, -3, 2)))
}
