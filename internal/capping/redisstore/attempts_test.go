package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
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
	erase := &eraseJob{script: s.top.scripts.Erase, key: key, field: field, skew: 250 * time.Millisecond}
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
		if s.top.route(s.layout.Partition(user)) != s.top.route(0) {
			there = user
		}
	}
	a, b := s.top.route(s.layout.Partition(here)), s.top.route(s.layout.Partition(there))
	batch := batchOf("a", []capping.UserID{there})
	verdicts := make([]capping.Verdict, 1)
	j := &filterJob{store: s, batch: batch, verdicts: verdicts}
	require.NoError(t, j.prepare(0))
	r := s.newRun(j, true)
	r.front(a) // as a run that is used again has it
	r.front(b)
	r.users(batch.Users)
	s.top.routes[s.layout.Partition(there)].Store(a) // as after a MOVED
	s.do(background(t, 5*time.Second), r)
	require.NoError(t, r.faults.err())
	require.Equal(t, capping.Allowed, verdicts[0].Outcome, "the node says where the slot is")
}

// errorReply is an error that a server answered.
type errorReply string

func (e errorReply) Error() string { return string(e) }
func (errorReply) RedisError()     {}

func TestRemediesOfRepliesThatComeWithAFailover(t *testing.T) {
	t.Parallel()
	reply := func(text string) error { return fmt.Errorf("wait for replicas: %w", errorReply(text)) }
	for text, want := range map[string]remedy{
		"UNBLOCKED force unblock from blocking operation, instance state changed": {kind: kindDown, unknown: true, refresh: true},
		"ERR WAIT cannot be used with replica instances. Please also note …":      {kind: kindDown, unknown: true, refresh: true},
		"ERR max number of clients reached":                                       {kind: kindDown},
		"ERR something else":                                                      {kind: kindServer, unknown: true},
	} {
		require.Equal(t, want, remedyOf(reply(text)), text)
	}
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
		require.Zero(t, r.faults.users[kindAcks])
	}
	for n := range maxServerTries {
		require.Zero(t, r.faults.users[kindServer], "after %d", n)
		c.err = errorReply("ERR what is this")
		r.settle(c)
	}
	require.Equal(t, 1, r.faults.users[kindServer])
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

func TestReplicasAreReadFromInfo(t *testing.T) {
	t.Parallel()
	online, syncing, all := countFed(parseInfo("connected_slaves:4\r\nslave0:ip=a,port=1,state=online,offset=1,lag=0\r\n" +
		"slave1:ip=a,port=2,state=wait_bgsave,offset=0\r\nslave2:ip=a,port=3,state=send_bulk,offset=0\r\nslave3:ip=a,port=4,state=send_bulk_and_stream\r\n"))
	require.Equal(t, []int{1, 3, 4}, []int{online, syncing, all})
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
