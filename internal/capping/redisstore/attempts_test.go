package redisstore

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/fault"
	"capper/internal/capping/redisstore/script"
	"capper/internal/testcluster"
)

// An attempt that was held up on its way must not remove what was sent after
// its repetition had been answered.
func TestLateReleasesAndErasuresRemoveNothing(t *testing.T) {
	t.Parallel()
	s := openShared(t, func(c *Config) { c.ClockSkew = 250 * time.Millisecond })
	user := capping.UserID(5)
	require.Equal(t, 1, count(filter(t, s, batchOf("a", []capping.UserID{user})), capping.Allowed))
	partition, key, field := s.key(user)
	release := &releaseJob{store: s, token: capping.TokenOf("a")}
	erase := &eraseJob{script: s.scripts.Erase, key: key, field: field, skew: 250 * time.Millisecond}
	for _, j := range []job{release, erase} {
		c := &call{job: j, partition: partition, items: []uint64{script.Item(user, 0)}}
		j.encode(c)
		send := func(ago time.Duration) error {
			c.now = capping.InstantOf(time.Now().Add(-ago))
			j.stamp(c)
			return owner(t, s, user).Do(t.Context(), c.args.Values()...).Err()
		}
		require.ErrorContains(t, send(1600*time.Millisecond), "CLOCKSKEW 1")
		require.ErrorContains(t, send(-1600*time.Millisecond), "CLOCKSKEW -1")
		require.Equal(t, 1, readLogs(t, s)[user].Len())
		require.NoError(t, send(0))
		require.Empty(t, readLogs(t, s))
		require.Equal(t, 1, count(filter(t, s, batchOf("a", []capping.UserID{user})), capping.Allowed))
	}
}

// A partition may get another master between two looks at the routes, one that
// the run has already seen to.
func TestUsersWhoseRouteChangesAreNotForgotten(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	var here, there capping.UserID
	for _, user := range spread(64) {
		if s.top.Route(s.layout.Partition(user)) != s.top.Route(0) {
			there = user
		}
	}
	a, b := s.top.Route(s.layout.Partition(here)), s.top.Route(s.layout.Partition(there))
	batch := batchOf("a", []capping.UserID{there})
	verdicts := make([]capping.Verdict, 1)
	j := &filterJob{store: s, batch: batch, verdicts: verdicts}
	j.prepare(0)
	r := s.newRun(j, true)
	r.front(a) // as a run that is used again has it
	r.front(b)
	r.users(batch.Users)
	s.top.Redirect(s.layout.Partition(there), a, a.Addr()) // as after a MOVED
	s.do(background(t, 5*time.Second), r)
	require.NoError(t, r.faults.err())
	require.Equal(t, capping.Allowed, verdicts[0].Outcome, "the node says where the slot is")
}

// errorReply is an error that a server answered.
type errorReply string

func (e errorReply) Error() string { return string(e) }
func (errorReply) RedisError()     {}

func TestRemediesOfAttempts(t *testing.T) {
	t.Parallel()
	require.Equal(t, fault.Remedy{Kind: fault.Lost, Refresh: true}, fault.Of(&errUnsent{io.EOF}))
	require.Equal(t, fault.Remedy{Kind: fault.Acks, Unknown: true, Refresh: true}, fault.Of(&errAcks{0, 1}))
}

// Only errors that we have no remedy for count towards giving up.
func TestFailedAttemptsOfOtherKindsDoNotGiveUsersUp(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	r := s.newRun(&commandJob{}, false)
	c := &call{run: r, job: r.job, since: capping.Never}
	for range 10 {
		c.err = &errAcks{0, 1}
		r.settle(c)
		require.Zero(t, r.faults.users[fault.Acks])
	}
	for n := range maxServerTries {
		require.Zero(t, r.faults.users[fault.Server], "after %d", n)
		c.err = errorReply("ERR what is this")
		r.settle(c)
	}
	require.Equal(t, 1, r.faults.users[fault.Server])
}

// While a replica copies everything anew it confirms nothing: the others are
// enough.
func TestReplicasThatCopyEverythingAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{Replicas: 2, Settings: []string{"repl-diskless-sync-delay 6", "repl-backlog-size 16384"}})
	a := newAcksTrial(t, c)
	copying := a.replicas(t)[0]
	require.NoError(t, c.Kill(copying))
	a.allows(t, a.healthy)
	master := admin(t, a.master)
	tag := a.healthy.prefixes[a.healthy.layout.Partition(a.users[0])]
	require.NoError(t, master.Set(t.Context(), tag+"filler", make([]byte, 100_000), time.Minute).Err()) // more than its backlog
	require.NoError(t, c.Restart(copying))
	state := func() string {
		text, err := master.Info(t.Context(), "replication").Result()
		require.NoError(t, err)
		return text
	}
	require.Eventually(t, func() bool { return strings.Contains(state(), "state=wait_bgsave") }, 30*time.Second, 10*time.Millisecond)
	refreshes(t, a.healthy)
	outcome, err := a.send(t, a.healthy)
	require.NoError(t, err)
	require.Equal(t, capping.Allowed, outcome)
	require.Contains(t, state(), "state=wait_bgsave", "it was still copying")
}

func TestEveryUserInAGroupOfItsOwn(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	b := batchOf("a", everyNth(1000, 1))
	b.Rules, b.Channel = nil, 200
	for g := range 250 {
		rules := make([]capping.Rule, 32)
		for i := range rules {
			rules[i] = capping.Rule{Max: 9, Hold: 3_600_000, Channels: capping.ChannelSetOf(capping.Channel(i), 200)}
		}
		rules[g%32].Max = 1 + g%2
		b.Rules = append(b.Rules, rules)
	}
	for i := range b.Users {
		b.Groups[i] = uint8(i * 7 % 250)
	}
	for round := range 3 {
		b.Message.ID, b.Token = fmt.Sprint(round), capping.TokenOf(fmt.Sprint(round))
		for i, v := range filter(t, s, b) {
			g := int(b.Groups[i])
			want := capping.Allowed
			if round > g%2 {
				want = capping.Denied
				require.Equal(t, g%32, int(v.Rule))
			}
			require.Equal(t, want, v.Outcome, "round %d, user %d", round, b.Users[i])
		}
	}
}
