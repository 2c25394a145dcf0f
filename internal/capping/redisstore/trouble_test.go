package redisstore

import (
	"context"
	"encoding"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/live"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// spread returns n users over all partitions.
func spread(n int) []capping.UserID {
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = capping.UserID(uint32(i) * script.Standard.BucketSize)
	}
	return users
}

func TestFullServerDecidesNobodyAndRecordsNothing(t *testing.T) {
	t.Parallel()
	server := testcluster.Single(t, testcluster.Options{Settings: []string{"maxmemory-policy noeviction"}})
	s := openTest(t, Config{Addrs: server.Addrs, ReplicaAcks: FixedAcks(0)})
	client := admin(t, server.Addrs[0])
	users := spread(2000)
	daily := rolling(1, time.Hour)
	require.Equal(t, 1000, count(filter(t, s, batchOf("a", users[:1000], daily)), capping.Allowed))

	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	verdicts := make([]capping.Verdict, len(users))
	err := s.Filter(t.Context(), batchOf("b", users, daily), verdicts)
	require.ErrorContains(t, err, "(memory)")
	require.NotContains(t, err.Error(), "(deadline)", "nothing is gained by waiting")
	require.Zero(t, count(verdicts, capping.Allowed))
	require.EventuallyWithT(t, func(c *assert.CollectT) { // a refresh may have been late
		health := s.Health(t.Context())
		require.Equal(c, "degraded", health.State, "no node is missing, and users are unavailable all the same")
		require.Contains(c, health.Error, "OOM")
	}, 20*time.Second, 10*time.Millisecond)

	require.NoError(t, client.ConfigSet(t.Context(), "maxmemory", "0").Err())
	logs := readLogs(t, s)
	require.Len(t, logs, 1000)
	require.Equal(t, 1000, count(filter(t, s, batchOf("b", users, daily)), capping.Allowed))
}

func TestWrongTypeAndCorruptLogsCostOnlyTheirUsers(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, func(t *testing.T, l layout) {
		// three buckets; the first and the last share a partition
		users := []capping.UserID{0, 1, 2, 190, 191, 64 * 190, 64*190 + 1}
		if !l.ids.isDense() {
			users = []capping.UserID{5, 5 + 64, 5 + 128, 6, 6 + 64, 1<<60 + 5, 1<<60 + 69}
		}
		costOnlyTheirUsers(t, openShared(t, l.with(nil)), users)
	})
}

// costOnlyTheirUsers makes the first three users' bucket a text, and the log of the fifth user corrupt.
func costOnlyTheirUsers(t *testing.T, s *Store, users []capping.UserID) {
	_, key, _ := s.key(users[1])
	client := owner(t, s, users[1])
	require.NoError(t, client.Set(t.Context(), key, "not a hash", time.Minute).Err())
	_, corrupt, field := s.key(users[4])
	require.NoError(t, owner(t, s, users[4]).HSet(t.Context(), corrupt, field, "thirteen byte").Err())

	verdicts := make([]capping.Verdict, len(users))
	err := s.Filter(t.Context(), batchOf("a", users, rolling(1, time.Hour)), verdicts)
	require.ErrorContains(t, err, "1 users undecided (corrupt)")
	require.ErrorContains(t, err, "3 users undecided (wrong_type)")
	U, A := capping.Unavailable, capping.Allowed
	for i, want := range []capping.Outcome{U, U, U, A, U, A, A} {
		require.Equal(t, want, verdicts[i].Outcome, "user %d", users[i])
	}
	_, err = s.Log(t.Context(), users[4])
	require.ErrorContains(t, err, "corrupt")
	released := make([]capping.Released, len(users))
	require.Error(t, s.Release(t.Context(), capping.Message{ID: "a"}.Token(), 0, users, released))
	require.Equal(t, []capping.Released{0, 0, 0, capping.ReleaseDone, 0, capping.ReleaseDone, capping.ReleaseDone},
		released)

	require.ErrorContains(t, s.Erase(t.Context(), users[1]), "wrong_type")
	require.NoError(t, client.Del(t.Context(), key).Err())
	require.NoError(t, s.Erase(t.Context(), users[4]))
	require.Equal(t, len(users), count(filter(t, s, batchOf("b", users, rolling(1, time.Hour))), A))
}

func TestSkewedClockIsRefusedAndRecordsNothing(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	s := openShared(t, func(c *Config) {
		c.ClockSkew = 250 * time.Millisecond
		c.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	users := spread(500)
	for _, off := range []time.Duration{time.Minute, -time.Minute} {
		ahead.Store(int64(off))
		verdicts := make([]capping.Verdict, len(users))
		err := s.Filter(t.Context(), batchOf("a", users, rolling(1, time.Hour)), verdicts)
		require.ErrorContains(t, err, "500 users undecided (clock)") // and not (deadline): nothing is gained by waiting
		require.Zero(t, count(verdicts, capping.Allowed)+count(verdicts, capping.Denied))
		stored, err := s.Change(t.Context(), &live.Batch{Set: "skewed", Add: users})
		require.ErrorContains(t, err, "(clock)")
		require.ElementsMatch(t, users, stored.Unstored)
		require.NoError(t, s.Renew(t.Context(), nil))
		require.Zero(t, s.Lists().Len("skewed"), "nothing was written")
	}
	ahead.Store(int64(100 * time.Millisecond))
	_, err := s.Change(t.Context(), &live.Batch{Set: "skewed", Add: users})
	require.NoError(t, err)
	require.Equal(t, len(users), s.Lists().Len("skewed"))
	require.Equal(t, 500, count(filter(t, s, batchOf("a", users, rolling(1, time.Hour))), capping.Allowed))
}

// A denial and a replay only report stored data. A replay, like an allowed send, is answered only when replicas hold
// the entry.
func TestReplayIsOnlyAnsweredWhenReplicasHoldIt(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, testcluster.Options{Replicas: 1})
	s := openTest(t, Config{Addrs: c.Addrs[:1], AttemptTimeout: 400 * time.Millisecond})
	users := spread(40)
	daily := rolling(1, time.Hour)
	require.NoError(t, c.Pause(c.Addrs[1]))
	for range 2 { // the first records, the second finds it recorded
		testkit.FailsWith(t, "0 of 1 replicas confirmed in time", func() error {
			verdicts := make([]capping.Verdict, len(users))
			err := s.Filter(background(t, time.Second), batchOf("a", users, daily), verdicts)
			require.Equal(t, len(users), count(verdicts, capping.Unavailable))
			return err
		})
	}
	require.Len(t, readLogs(t, s), len(users))
	require.NoError(t, c.Resume(c.Addrs[1]))
	require.Equal(t, len(users), count(filter(t, s, batchOf("a", users, daily)), capping.Replayed))
}

func TestDeadlinesWhileNodesAreSilent(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{NodeTimeout: time.Minute})
	// Who waited for the end of an attempt would come too late for the test.
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), AttemptTimeout: 5 * time.Minute})
	users := spread(2000)
	filter(t, s, batchOf("warm", users))
	silent := c.Addrs[1]
	require.NoError(t, c.Pause(silent))
	ends := func(ctx context.Context, why error) {
		t.Helper()
		ended := make(chan error)
		go func() { ended <- s.Filter(ctx, batchOf("a", users), make([]capping.Verdict, len(users))) }()
		require.ErrorIs(t, testkit.Receive(t, ended), why)
	}
	for _, d := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond} {
		ends(background(t, d), context.DeadlineExceeded)
		ended := make(chan error)
		go func() { _, err := s.Log(background(t, d), userOn(s, silent)); ended <- err }()
		require.Error(t, testkit.Receive(t, ended))
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	ends(ctx, context.Canceled)

	require.NoError(t, c.Resume(silent))
	filter(t, s, batchOf("a", users))
}

// userOn returns a user whom the node holds.
func userOn(s *Store, addr string) capping.UserID {
	for p := range s.keyspace.Partitions {
		if s.top.Route(p).Addr() == addr {
			return inPartition(s, p, 1)[0]
		}
	}
	panic("no partition on " + addr)
}

func TestBadBatchesAreRefusedWhole(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	for name, change := range map[string]func(*capping.Batch){
		"group 3":                func(b *capping.Batch) { b.Groups[0] = 3 },
		"must have a message id": func(b *capping.Batch) { b.Token = capping.Token{} },
		"retention":              func(b *capping.Batch) { b.Retention = 0 },
		"must not set a time":    func(b *capping.Batch) { b.At = 5 },
		"1 users":                func(b *capping.Batch) { b.Groups = nil },
	} {
		b := batchOf("a", []capping.UserID{7})
		change(b)
		verdicts := make([]capping.Verdict, 1)
		require.ErrorContains(t, s.Filter(t.Context(), b, verdicts), name)
		require.Equal(t, capping.Unavailable, verdicts[0].Outcome)
	}
	require.Empty(t, readLogs(t, s))
}

// The scripts reject impossible arguments before they write.
func TestScriptsCheckArgumentsBeforeTheyWrite(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, scriptsCheckArguments)
}

func scriptsCheckArguments(t *testing.T, l layout) {
	s := openShared(t, l.with(nil))
	n, key := s.top.Route(0), s.prefixes[0]+"0"
	good := script.Header{Now: 1000, Since: capping.Never, Retention: time.Hour, Forget: time.Hour, Record: true,
		Token: capping.Token{1}}
	book := script.NewRulebook([][]capping.Rule{{rolling(1, time.Hour)}})
	var a script.Args
	user, field := capping.UserID(5), "\x05"
	if s.keyspace.IsSpread() {
		user, field = 5<<6, "\x00\x00\x00\x00\x00\x00\x05"
	}
	a.Filter(s.scripts.Filter, s.keyspace, s.prefixes[0], []uint64{s.keyspace.Item(user, 0)}, []capping.UserID{user},
		[]uint8{0}, &book, script.Counts{}, nil)
	arg := func(n int) string {
		text, err := a.Values()[n].(encoding.BinaryMarshaler).MarshalBinary()
		require.NoError(t, err)
		return string(text)
	}
	head := func(change func(*script.Header)) string {
		h := good
		if change != nil {
			change(&h)
		}
		a.StampFilter(h)
		return arg(4)
	}
	rules, users := arg(5), arg(6)
	require.Equal(t, "\x01"+field+"\x00", users)
	for i, args := range [][]any{
		{},
		{head(nil), rules},
		{head(nil)[1:], rules, users},
		{head(func(h *script.Header) { h.Now = capping.Never }), rules, users},
		{head(func(h *script.Header) { h.Retention, h.Forget = 0, 0; h.Now = 1 << 40 }), rules, users},
		{head(func(h *script.Header) { h.Retention += time.Second }), rules, users},
		{head(nil), rules[1:], users},
		{head(nil), rules + "x", users},
		{head(nil), "", users},
		{head(nil), rules, ""},
		{head(nil), rules, "\x02" + field + "\x00"},
		{head(nil), rules, "\x01" + field},
		{head(nil), rules, "\x00"},
		{head(nil), rules, users + "\x01"},
		{head(nil), rules, "\x21" + string(make([]byte, 33*(1+len(field))))},
		{strings.Replace(head(nil), "\x01\x00\x00\x01", "\x02\x00\x00\x01", 1), rules, users}, // the counts alone
		{strings.Replace(head(nil), "\x01\x00\x00\x01", "\x03\x00\x00\x01", 1), rules, users},
	} {
		err := n.Client().EvalSha(t.Context(), s.scripts.Filter.SHA, []string{key}, args...).Err()
		require.ErrorContains(t, err, "BADARG", "case %d", i)
	}
	sign, err := os.ReadFile("topology/sign.lua")
	require.NoError(t, err)
	for _, one := range []*script.Script{s.scripts.Release, s.scripts.Erase, s.scripts.Beat, s.scripts.Rate,
		s.scripts.AtLeast, s.scripts.Answers, s.scripts.Title, script.New(string(sign))} {
		for _, args := range [][]any{{}, {"xxxxxxx", "yy"}, {"x", "nan"}, {"123456", "\x02\x01"},
			{"longest field", string(make([]byte, 9))}} {
			err := n.Client().EvalSha(t.Context(), one.SHA, []string{key}, args...).Err()
			if one != s.scripts.Erase || len(args) != 1 {
				require.ErrorContains(t, err, "BADARG", fmt.Sprint(args))
			}
		}
	}
	require.Empty(t, readLogs(t, s))
	reply, err := n.Client().EvalSha(t.Context(), s.scripts.Filter.SHA, []string{key}, head(nil), rules, users).Text()
	require.NoError(t, err)
	require.Equal(t, "A", reply)
}
