//go:build storms

package redisstore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

// operator is the user who changes the rights of others in these tests.
const operator = "operator"

// documented returns the ACL file of deploy, with the operator's line added.
func documented(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/redis.acl")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "users.acl")
	require.NoError(t, os.WriteFile(path, append(text, "user operator on >CHANGE-ME ~* &* +@all\n"...), 0o600))
	return path
}

func documentedOptions(t testing.TB) testcluster.Options {
	return testcluster.Options{ACL: documented(t), User: operator, Password: leastUser, NodeTimeout: steady,
		Settings: []string{"appendfsync always"}}
}

// operate returns the operator's client of a server.
func operate(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Username: operator, Password: leastUser, Protocol: 2,
		DisableIdentity: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// setDefault sets the rights of the user default, now and after a restart.
func setDefault(t testing.TB, addr string, rules ...any) {
	t.Helper()
	grantDefault(t, addr, rules...)
	require.NoError(t, operate(t, addr).Do(t.Context(), "acl", "save").Err())
}

// grantDefault sets the rights of the user default until the server restarts.
func grantDefault(t testing.TB, addr string, rules ...any) {
	t.Helper()
	require.NoError(t, operate(t, addr).Do(t.Context(), append([]any{"acl", "setuser", "default"}, rules...)...).Err())
}

// shardOf returns the addresses of a master of the store and of its replica.
func shardOf(t testing.TB, s *Store, partition int) (master, replica string) {
	t.Helper()
	master = s.top.Route(partition).Addr()
	role, err := operate(t, master).Do(t.Context(), "role").Slice()
	require.NoError(t, err)
	first := role[2].([]any)[0].([]any)
	return master, first[0].(string) + ":" + first[1].(string)
}

// oracle knows which users a store has allowed, and calls for them again: no user may get a second message.
type oracle struct {
	store   *Store
	own     []capping.UserID // of the server that restarts
	others  []capping.UserID
	allowed []capping.UserID
	probes  int
}

// newOracle sends to each user the one message that the limit allows.
func newOracle(t testing.TB, s *Store, victim *topology.Node) *oracle {
	t.Helper()
	o := &oracle{store: s}
	for _, user := range spread(6000) {
		if s.top.Route(s.keyspace.Partition(user)) == victim {
			o.own = append(o.own, user)
		} else {
			o.others = append(o.others, user)
		}
	}
	o.send(t, "first", append(o.own[:len(o.own):len(o.own)], o.others...))
	return o
}

// send sends the message to users who have received none yet.
func (o *oracle) send(t testing.TB, message string, users []capping.UserID) {
	t.Helper()
	require.Equal(t, len(users), count(filter(t, o.store, batchOf(message, users, rolling(1, week))), capping.Allowed))
	o.allowed = append(o.allowed, users...)
}

// restarted restarts servers during calls, and returns the users' outcomes after they are decided again or their
// partitions are quarantined.
func (o *oracle) restarted(
	t *testing.T, end func(addr string) error, c *testcluster.Cluster, addrs ...string,
) (reasons map[string]int) {
	t.Helper()
	p := press(o.store, o.allowed)
	defer p.stop()
	p.pressed(t, &p.denied, 2000)
	for _, addr := range addrs {
		require.NoError(t, end(addr))
	}
	for _, addr := range addrs {
		require.NoError(t, c.Restart(addr))
	}
	// A server that lost the first sends may record a probe and answer too late. After a restart of capper the same
	// message would be a replay, so each probe is a message of its own.
	testkit.Eventually(t, func() bool {
		o.probes++
		verdicts, probe := make([]capping.Verdict, len(o.own)), fmt.Sprint("probe ", o.probes)
		_ = o.store.Filter(background(t, 2*time.Second), batchOf(probe, o.own, rolling(1, week)), verdicts)
		reasons = o.store.barredPartitions()
		return len(reasons) > 0 || count(verdicts, capping.Denied) == len(o.own)
	}, "users are decided, or barred")
	p.pressed(t, &p.denied, 2000)
	p.stop()
	require.Zero(t, p.allowed.Load(), "somebody was allowed again")
	return reasons
}

// Under the documented ACL file a restart of both copies of a shard loses nothing.
func TestRestartsUnderTheDocumentedRights(t *testing.T) {
	t.Parallel()
	options := documentedOptions(t)
	options.Replicas = 1
	c := testcluster.Start(t, options)
	s := openTest(t, Config{Addrs: c.Addrs})
	require.Empty(t, warningsOf(t, s))
	master, replica := shardOf(t, s, 0)
	o := newOracle(t, s, s.top.Route(0))
	for name, end := range map[string]func(string) error{"kill -9": c.Kill, "SIGTERM": c.Shut} {
		require.Empty(t, o.restarted(t, end, c, replica, master), name)
		setDefault(t, master, "reset", "off", "~*", "&*", "+@all") // is as good
		setDefault(t, replica, "reset", "off", "~*", "&*", "+@all")
	}
	allDenied(t, s, "last", o.allowed)
}

// Servers that drop records during loading make their users unavailable.
func TestRestartsThatDropRecords(t *testing.T) {
	t.Parallel()
	options := documentedOptions(t)
	options.Replicas = 1
	c := testcluster.Start(t, options)
	s := openTest(t, Config{Addrs: c.Addrs})
	master, replica := shardOf(t, s, 0)
	o := newOracle(t, s, s.top.Route(0))
	setDefault(t, master, "reset", "off")
	setDefault(t, replica, "reset", "off")
	reasons := o.restarted(t, c.Kill, c, replica, master)
	require.NotZero(t, reasons[topology.Dropped])
	require.Len(t, reasons, 1)
	o.barred(t, "the server dropped records while it loaded its append-only file")
	setDefault(t, master, "off", "~*", "&*", "+@all")
	setDefault(t, replica, "off", "~*", "&*", "+@all")
	o.barred(t, "the server dropped records while it loaded its append-only file")
	beginAnew(t, s)
	testkit.Eventually(t, func() bool { // a busy server is looked at late
		verdicts := make([]capping.Verdict, len(o.own))
		_ = s.Filter(t.Context(), batchOf("anew", o.own, rolling(1, week)), verdicts) // says who is unavailable
		return count(verdicts, capping.Unavailable) == 0
	}, "all are decided, those who lost nothing as well: the replica may hold them in a base file that it loads whole")
	require.Empty(t, o.restarted(t, c.Kill, c, replica, master), "from then on all is well")
}

// barred requires that the server's users are unavailable, that the status says why, that another start returns an
// error, and that no other user is affected.
func (o *oracle) barred(t *testing.T, why string) {
	t.Helper()
	looked(t, o.store)
	verdicts := make([]capping.Verdict, len(o.own))
	require.Error(t, o.store.Filter(t.Context(), batchOf("barred", o.own, rolling(1, week)), verdicts))
	require.Equal(t, len(o.own), count(verdicts, capping.Unavailable))
	require.Contains(t, o.store.Health(t.Context()).Error, why)
	if len(o.others) > 0 {
		require.Equal(t, len(o.others), count(filter(t, o.store, batchOf("others", o.others, rolling(1, week))),
			capping.Denied))
	}
}

// Such a server lacks only the sends since the last rewrite of the append-only file, with or without a check of the
// sentinel keys in between.
func TestRestartsThatDropRecordsSinceARewrite(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, documentedOptions(t))
	s := openTest(t, Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0)})
	o := newOracle(t, s, s.top.Route(0))
	client := operate(t, c.Addrs[0])
	for base, name := range []string{"a look between", "no look between"} {
		setDefault(t, c.Addrs[0], "reset", "off", "~*", "&*", "+@all")
		if name == "no look between" {
			s.fleet.cancel()
			s.fleet.wait.Wait()
		}
		require.NoError(t, client.BgRewriteAOF(t.Context()).Err())
		testkit.Eventually(t, func() bool {
			info := client.Info(t.Context(), "persistence").Val()
			return strings.Contains(info, "aof_rewrite_in_progress:0") &&
				strings.Contains(info, "aof_rewrite_scheduled:0")
		})
		more := make([]capping.UserID, 3000)
		for i := range more {
			more[i] = capping.UserID((base+1)*50_000_000 + i)
		}
		o.send(t, name, more)
		setDefault(t, c.Addrs[0], "reset", "off")
		before, err := s.Log(t.Context(), more[0])
		require.NoError(t, err)
		if name == "a look between" {
			looked(t, s)
		}
		require.Equal(t, map[string]int{topology.Dropped: 64}, o.single(t, c), name)
		o.barred(t, "64 of 64 partitions: the server dropped records")
		beginAnew(t, s)
		after, err := s.Log(t.Context(), more[0])
		require.NoError(t, err)
		require.NotEqual(t, before, after, "the send is lost")
		if lost := o.lost(t); len(lost) > 0 {
			o.send(t, "anew", lost)
		}
	}
}

// lost returns the users whose sends are lost, without those whose later call the server recorded and answered too
// late.
func (o *oracle) lost(t *testing.T) (lost []capping.UserID) {
	t.Helper()
	for i, verdict := range filter(t, o.store, &capping.Batch{
		Users: o.allowed, Groups: make([]uint8, len(o.allowed)), Rules: [][]capping.Rule{{rolling(1, week)}},
		Retention: week,
	}) {
		if verdict.Outcome == capping.Allowed {
			lost = append(lost, o.allowed[i])
		}
	}
	o.allowed = slices.DeleteFunc(o.allowed, func(user capping.UserID) bool { return slices.Contains(lost, user) })
	return lost
}

// single restarts a standalone server.
func (o *oracle) single(t *testing.T, c *testcluster.Cluster) (reasons map[string]int) {
	t.Helper()
	p := press(o.store, o.allowed)
	defer p.stop()
	p.pressed(t, &p.denied, 2000)
	require.NoError(t, c.Kill(c.Addrs[0]))
	require.NoError(t, c.Restart(c.Addrs[0]))
	testkit.Eventually(t, func() bool {
		reasons = o.store.barredPartitions()
		barred := 0
		for _, partitions := range reasons {
			barred += partitions
		}
		return barred == 64 // they are barred one after the other
	})
	p.pressed(t, &p.unavailable, 2000)
	p.stop()
	require.Zero(t, p.allowed.Load(), "somebody was allowed again")
	return reasons
}

// Open rejects a server whose user default lacks rights, before the server drops anything.
func TestOpenRefusesServersThatWouldDropRecords(t *testing.T) {
	t.Parallel()
	c := testcluster.Single(t, documentedOptions(t))
	config := unhurried(Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Username: leastUser, Password: leastUser})
	for name, test := range map[string]struct {
		rules []string
		want  string
	}{
		"no rights": {strings.Fields("reset off"),
			"the Redis user default may not run hset, hdel, hincrby, pexpireat, set, setrange, zadd, " +
				"zremrangebyscore, del, unlink: Redis loads its append-only file as that user"},
		"one lacks": {strings.Fields("reset off ~* &* +@all -pexpireat"),
			"the Redis user default may not run pexpireat: "},
		"a category lacks": {strings.Fields("reset on >x ~* &* +@all -@hash"),
			"the Redis user default may not run hset, hdel, hincrby: "},
		"other keys": {strings.Fields("reset on >x ~other:* &* +@all"),
			"the Redis user default may not run hset (on the keys of capper), "},
		"all, off":             {strings.Fields("reset off ~* &* +@all"), ""},
		"all, with a password": {strings.Fields("reset on >x allkeys allchannels allcommands"), ""},
		"by a selector":        {[]string{"reset", "off", "(~* +@all)"}, ""},
		"all that is written":  {strings.Fields("reset off ~fc:* +@all -@admin -@dangerous"), ""},
	} {
		args := []any{"acl", "setuser", "default"}
		for _, rule := range test.rules {
			args = append(args, rule)
		}
		require.NoError(t, operate(t, c.Addrs[0]).Do(t.Context(), args...).Err(), name)
		s, err := openInTime(t, config)
		if test.want != "" {
			require.ErrorContains(t, err, test.want, name)
			require.ErrorContains(t, err, `set "user default off ~* &* +@all" in its ACL (docs/redis.md)`, name)
			continue
		}
		require.NoError(t, err, name)
		require.Len(t, warningsOf(t, s), 1, "%s: that of replica_acks alone", name)
		require.NoError(t, s.Close())
	}
	require.NoError(t, operate(t, c.Addrs[0]).Do(t.Context(), "acl", "setuser", leastUser, "-acl|dryrun").Err())
	warnings := strings.Join(warningsOf(t, openTest(t, config)), "\n")
	require.Contains(t, warnings,
		`the user "capper" may not run acl|dryrun: capper cannot check whether the server's user default has all permissions`)
	require.Contains(t, warnings, "add +acl|dryrun to the user's rights (deploy/redis.acl)")
}

// settled waits until the current state of all partitions is recorded as a point.
func settled(t *testing.T, s *Store) {
	t.Helper()
	now := time.Now()
	testkit.Eventually(t, func() bool {
		s.fleet.beat(t.Context())
		for p := range s.keyspace.Partitions + 1 {
			if !s.top.Settled(p, now) {
				return false
			}
		}
		return true
	})
}

// files replaces a server's append-only files by those of another directory.
func files(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(filepath.Join(to, "appendonlydir")))
	require.NoError(t, os.CopyFS(filepath.Join(to, "appendonlydir"), os.DirFS(filepath.Join(from, "appendonlydir"))))
}

// A server with files of an earlier time lacks the newer sends, although its data is consistent. Instances remember
// how far the server had come; marks on other servers remember it when all instances restart.
func TestAServerWithAnOlderStateIsBarred(t *testing.T) {
	t.Parallel()
	c := testcluster.Start(t, testcluster.Options{NodeTimeout: steady, Settings: []string{"appendfsync always"}})
	config := Config{Addrs: c.Addrs, ReplicaAcks: FixedAcks(0), Username: leastUser, Password: leastUser}
	s := openTest(t, config)
	victim := s.top.Route(0)
	o := newOracle(t, s, victim)
	looked(t, s)
	early, newest := t.TempDir(), t.TempDir()
	files(t, c.Data(victim.Addr()), early)
	more := make([]capping.UserID, 500)
	for i := range more {
		more[i] = capping.UserID(50_000_000 + i)
	}
	o.send(t, "since", more)
	settled(t, s)
	looked(t, s) // others keep what is settled
	back := func(addr string) error {
		require.NoError(t, c.Kill(addr))
		files(t, c.Data(addr), newest)
		files(t, early, c.Data(addr))
		return nil
	}
	reasons := o.restarted(t, back, c, victim.Addr())
	require.NotZero(t, reasons[topology.Older])
	require.Len(t, reasons, 1)
	o.own = slices.DeleteFunc(o.own, func(user capping.UserID) bool {
		return s.top.Bar(s.keyspace.Partition(user)) == nil
	})
	o.others = nil
	o.barred(t, "the server returned with older data")

	require.NoError(t, s.Close())
	config.MustExist = true
	_, err := openInTime(t, config)
	require.ErrorContains(t, err, "the server returned with older data",
		"nobody is there who remembers it but other servers")
	require.NoError(t, c.Kill(victim.Addr()))
	files(t, newest, c.Data(victim.Addr()))
	require.NoError(t, c.Restart(victim.Addr()))
	var again *Store
	testkit.Eventually(t, func() bool {
		again, err = openInTime(t, config)
		return err == nil
	}, "its newest files are back")
	t.Cleanup(func() { require.NoError(t, again.Close()) })
	require.Equal(t, len(o.allowed), count(filter(t, again, batchOf("last", o.allowed, rolling(1, week))),
		capping.Denied))
}

// olderTrial is two stores on servers, one of which comes back with files of an earlier time.
type olderTrial struct {
	*testing.T
	cluster *testcluster.Cluster
	config  Config
	victim  string
	replica string // the victim's, or empty
	early   string // directories with the victim's files
	newest  string
	users   []capping.UserID // who have all had what they may
	stores  []*Store
}

func newOlderTrial(t *testing.T, c *testcluster.Cluster, acks Acks) *olderTrial {
	t.Helper()
	o := &olderTrial{T: t, cluster: c, victim: c.Addrs[0], early: t.TempDir(), newest: t.TempDir(), users: spread(6000),
		config: Config{Addrs: c.Addrs, ReplicaAcks: acks, Username: leastUser, Password: leastUser}}
	o.config.AttemptTimeout = patient // an attempt waits for the disk: a stalled one is no older state
	o.stores = []*Store{openTest(t, o.config), openTest(t, o.config)}
	o.config.MustExist = true
	if acks == Healthy {
		o.replica = c.Addrs[1]
	}
	looked(t, o.stores[0])
	files(t, c.Data(o.victim), o.early)
	require.Equal(t, len(o.users), o.ask("first", o.stores[0], capping.Allowed))
	return o
}

// ask calls for the users, and returns how many of them have the outcome.
func (o *olderTrial) ask(message string, s *Store, outcome capping.Outcome) int {
	o.Helper()
	verdicts := make([]capping.Verdict, len(o.users))
	_ = s.Filter(background(o.T, testkit.Patience), batchOf(message, o.users, rolling(1, week)), verdicts)
	return count(verdicts, outcome)
}

// comesBack ends the victim and starts it with the files of the directory; its replica gets them too.
func (o *olderTrial) comesBack(from string) {
	o.Helper()
	require.NoError(o, o.cluster.Kill(o.victim))
	if from == o.early {
		files(o.T, o.cluster.Data(o.victim), o.newest)
	}
	files(o.T, from, o.cluster.Data(o.victim))
	require.NoError(o, o.cluster.Restart(o.victim))
	if o.replica == "" {
		return
	}
	client := admin(o.T, o.replica)
	testkit.Eventually(o.T, func() bool {
		text, err := client.Info(o.Context(), "replication").Result()
		return err == nil && topology.ParseInfo(text)["master_link_status"] == "up"
	})
}

// barred requires that all stores quarantine the victim's partitions and allow no user.
func (o *olderTrial) barred(stores ...*Store) {
	o.Helper()
	for _, s := range stores {
		own := 0
		all := testkit.Poll(func() bool {
			looked(o.T, s)
			own = 0
			for p := range s.keyspace.Partitions {
				if s.top.Route(p).Addr() == o.victim {
					own++
				}
			}
			return s.barredPartitions()[topology.Older] == own
		})
		require.True(o, all, "of %d partitions of %s, barred are %v; %v", own, o.victim, s.barredPartitions(),
			warningsOf(o.T, s))
		require.Zero(o, o.ask("again", s, capping.Allowed))
		require.NotZero(o, o.ask("again", s, capping.Unavailable))
	}
}

// refused requires an error from an instance that must not create the store again.
func (o *olderTrial) refused() {
	o.Helper()
	// else its replica is not back yet
	testkit.FailsWith(o.T, "the server returned with older data", func() error {
		_, err := openInTime(o.T, o.config)
		return err
	})
	testkit.FailsWith(o.T, "set store.redis.create: true to create the store again from the remaining data",
		func() error {
			_, err := openInTime(o.T, o.config)
			return err
		})
}

// close closes all instances.
func (o *olderTrial) close() {
	for _, s := range o.stores {
		require.NoError(o, s.Close())
	}
	o.stores = nil
}

// An older state that one instance has seen remains known to instances that start beside it, after it or without it.
// It ends when the newest files are back, or when an operator accepts the loss in one instance.
func TestAnOlderStateStaysOne(t *testing.T) {
	t.Parallel()
	always := []string{"appendfsync always"}
	for name, test := range map[string]struct {
		start func(testing.TB, testcluster.Options) *testcluster.Cluster
		with  testcluster.Options
		acks  Acks
	}{
		"one server":             {testcluster.Single, testcluster.Options{}, FixedAcks(0)},
		"a master and a replica": {testcluster.Single, testcluster.Options{Replicas: 1}, Healthy},
		"a cluster":              {testcluster.Start, testcluster.Options{NodeTimeout: steady}, FixedAcks(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.with.Settings = always
			o := newOlderTrial(t, test.start(t, test.with), test.acks)
			for _, s := range o.stores {
				settled(t, s)
			}
			o.comesBack(o.early)
			o.barred(o.stores[0])
			o.refused() // beside those that know
			o.barred(o.stores...)
			o.close()
			o.refused() // nobody is there who remembers
			o.refused()

			o.comesBack(o.newest)
			o.stores = []*Store{openPatiently(t, o.config), openPatiently(t, o.config)} // its newest files are back
			allDenied(t, o.stores[0], "third", o.users)

			for _, s := range o.stores {
				settled(t, s)
			}
			o.comesBack(o.early)
			o.barred(o.stores...)
			o.comesBack(o.newest) // while instances run
			for _, s := range o.stores {
				allDenied(t, s, "fourth", o.users)
			}

			o.comesBack(o.early)
			o.barred(o.stores...)
			require.NoError(t, o.stores[0].Close())
			config := o.config
			config.MustExist = false
			anew := openPatiently(t, config)
			require.Contains(t, strings.Join(warningsOf(t, anew), "\n"), "store created again from the remaining "+
				"data: ")
			require.Contains(t, strings.Join(warningsOf(t, anew), "\n"), "the server returned with older data")
			testkit.Eventually(t, func() bool {
				looked(t, o.stores[1])
				return o.ask("fifth", o.stores[1], capping.Unavailable) == 0
			}, "one restart is enough for all instances")
			testkit.Eventually(t, func() bool {
				looked(t, anew)
				return o.ask("sixth", anew, capping.Unavailable) == 0
			})
			require.NotZero(t, o.ask("sixth", anew, capping.Denied))
			require.NoError(t, o.stores[1].Close())
			openPatiently(t, o.config)
		})
	}
}
