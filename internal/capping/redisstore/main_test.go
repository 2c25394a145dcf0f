package redisstore

import (
	"context"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/capping/redisstore/topology"
	"capper/internal/testcluster"
	"capper/internal/testkit"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silence{}) // before any client is made: dead nodes are this package's daily bread
	// Tests here mostly wait for nodes, not for processors. The command line's -parallel is read later, and goes
	// before.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	// The client library's redials of a dead node end a second after their pool.
	os.Exit(testkit.NoLeaks(testcluster.Run(m)))
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// namespace returns a namespace that no other test on a shared cluster uses.
func namespace() string { return testkit.Namespace() }

// leastUser is the user of deploy/redis.acl, whom every test server knows.
const leastUser = "capper"

// openShared opens a store with its own namespace on the shared cluster.
func openShared(t testing.TB, change func(*Config)) *Store {
	t.Helper()
	config := Config{Addrs: testcluster.Shared(t), Namespace: namespace()}
	if change != nil {
		change(&config)
	}
	if config.dial == nil && config.AttemptTimeout == 0 {
		config.AttemptTimeout = patient
	}
	return openTest(t, config)
}

// The constant patient is the time limit of an attempt at servers that no test breaks. If a busy machine does not
// answer an attempt in time, the store repeats it. The permits of both attempts are then taken. A late attempt to
// release may cancel a later send, because stores with another clock cannot know that the attempt is late.
const patient = 30 * time.Second

// openTest opens a store; its user has the least rights unless the configuration names a user. A call without a
// deadline has the time that a busy machine needs.
func openTest(t testing.TB, config Config) *Store {
	t.Helper()
	if config.Timeout == 0 {
		config.Timeout = testkit.Patience
	}
	if config.Username == "" && config.Password == "" {
		config.Username, config.Password = leastUser, leastUser
	}
	if kind := tortureIDs(); kind != "" && config.IDs == (IDs{}) {
		config.IDs = IDs{Kind: kind, Check: "1a2b3c4d"}
	}
	s, err := openInTime(t, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// tortureIDs returns the kind of ids in the stores of a torture: "" is dense.
func tortureIDs() string { return os.Getenv("CAPPER_TORTURE_IDS") }

// person returns the user for a number of a storm: the number, or its image in a torture with other ids.
func person(n capping.UserID) capping.UserID {
	if tortureIDs() == "" {
		return n
	}
	return imageOf(n)
}

// imageOf returns the image of a number, by a bijection of 64 bits.
func imageOf(n capping.UserID) capping.UserID {
	x := uint64(n) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return capping.UserID(x ^ x>>31)
}

// layout is a layout of keys. The zero value is that of dense ids.
type layout struct{ ids IDs }

// inBothLayouts runs a test with stores of dense ids, and with stores of UUIDs.
func inBothLayouts(t *testing.T, test func(t *testing.T, l layout)) {
	for _, l := range []layout{{}, {IDs{Kind: "uuid", Check: "1a2b3c4d", Users: 1_000_000}}} {
		t.Run(l.ids.marked().String(), func(t *testing.T) {
			t.Parallel()
			test(t, l)
		})
	}
}

// with returns a change of a configuration that includes the layout's ids.
func (l layout) with(change func(*Config)) func(*Config) {
	return func(c *Config) {
		c.IDs = l.ids
		if change != nil {
			change(c)
		}
	}
}

// user returns the user for a number: the number, or its image.
func (l layout) user(n capping.UserID) capping.UserID {
	if l.ids.isDense() {
		return n
	}
	return imageOf(n)
}

// users returns the users for the numbers, ascending.
func (l layout) users(numbers ...capping.UserID) []capping.UserID {
	users := make([]capping.UserID, len(numbers))
	for i, n := range numbers {
		users[i] = l.user(n)
	}
	slices.Sort(users)
	return users
}

// neighbours returns n users of one bucket that no other call with the number returns.
func (l layout) neighbours(number, n int) []capping.UserID {
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = capping.UserID(uint32(number)*script.Standard.BucketSize + uint32(i))
		if !l.ids.isDense() {
			users[i] = capping.UserID(uint64(number)<<32 | uint64(i)<<6 | 5)
		}
	}
	return users
}

// openPatiently opens a store as soon as possible: a restarted server has no replica at first, and a busy server may
// be late for short attempts.
func openPatiently(t testing.TB, config Config) (s *Store) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		opened, err := openInTime(t, config)
		s = opened
		return err == nil
	})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// allDenied requires that the users are denied after a restarted server has its replicas back, and that no user is
// allowed before.
func allDenied(t testing.TB, s *Store, message string, users []capping.UserID) {
	t.Helper()
	allowed, verdicts := 0, make([]capping.Verdict, len(users))
	testkit.Eventually(t, func() bool {
		looked(t, s)
		_ = s.Filter(background(t, testkit.Patience), batchOf(message, users, rolling(1, week)), verdicts)
		allowed += count(verdicts, capping.Allowed)
		return count(verdicts, capping.Denied) == len(users)
	})
	require.Zero(t, allowed)
}

// openInTime opens a store with a short first check of the servers.
func openInTime(t testing.TB, config Config) (s *Store, err error) {
	t.Helper()
	err = testkit.InTime(func() (err error) {
		s, err = Open(t.Context(), config)
		return err
	})
	return s, err
}

// unhurried gives servers the time that they need on a busy machine. Without it a start would go on with unchecked
// settings.
func unhurried(config Config) Config {
	config.AttemptTimeout, config.Timeout = 10*time.Second, testkit.Patience
	return config
}

// warningsOf returns the warnings of Health, without the warning of a new store.
func warningsOf(t *testing.T, s *Store) []string {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(s.Health(t.Context()).Warnings), func(warning string) bool {
		return strings.HasPrefix(warning, "the store was created at this start")
	})
}

// clock is a clock that tests set, also by the instants of logs.
type clock struct{ *testkit.Clock }

func newClock() *clock { return &clock{testkit.NewClock()} }

func (c *clock) now() time.Time { return c.Now() }

func (c *clock) advance(d time.Duration) { c.Advance(d) }

func (c *clock) instant() capping.Instant { return capping.InstantOf(c.Now()) }

func (c *clock) set(at capping.Instant) { c.Set(at.Time()) }

func rolling(max int, d time.Duration) capping.Rule {
	return capping.Rule{Max: max, Hold: d.Milliseconds()}
}

// batchOf returns a recording batch of one group.
func batchOf(message string, users []capping.UserID, rules ...capping.Rule) *capping.Batch {
	return &capping.Batch{
		Message: capping.Message{ID: message}, Token: capping.Message{ID: message}.Token(), Users: users,
		Groups: make([]uint8, len(users)),
		Rules:  [][]capping.Rule{rules}, Record: true, Retention: 7 * 24 * time.Hour,
	}
}

func filter(t testing.TB, s *Store, b *capping.Batch) []capping.Verdict {
	t.Helper()
	verdicts := make([]capping.Verdict, len(b.Users))
	require.NoError(t, s.Filter(t.Context(), b, verdicts))
	return verdicts
}

// steady is the node timeout of a cluster that must not fail over, however busy the machine is.
const steady = 15 * time.Second

// admin returns a client for operations that a store never runs.
func admin(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: testkit.Patience, ReadTimeout: testkit.Patience, WriteTimeout: testkit.Patience,
		PoolTimeout: testkit.Patience,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// owner returns an admin client of the master that holds the user.
func owner(t testing.TB, s *Store, user capping.UserID) *redis.Client {
	t.Helper()
	partition, _, _ := s.key(user)
	return admin(t, s.top.Route(partition).Addr())
}

// beginAnew makes emptied servers usable again, like a restart of capper.
func beginAnew(t testing.TB, stores ...*Store) {
	t.Helper()
	for _, s := range stores {
		require.NoError(t, testkit.InTime(func() error { return s.fleet.start(t.Context()) }), "a restart of capper")
	}
}

func background(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func count(verdicts []capping.Verdict, o capping.Outcome) (n int) {
	for _, v := range verdicts {
		if v.Outcome == o {
			n++
		}
	}
	return n
}

// identity identifies the send of a call.
type identity struct {
	message capping.Message
	channel capping.Channel
}

// batch returns a recording batch of the send.
func (i identity) batch(users []capping.UserID, rules ...capping.Rule) *capping.Batch {
	b := batchOf(i.message.ID, users, rules...)
	b.Message, b.Token, b.Channel = i.message, i.message.Token(), i.channel
	return b
}

// readLogs returns every log in the store's namespace.
func readLogs(t testing.TB, store *Store) map[capping.UserID]capping.Log {
	t.Helper()
	logs := map[capping.UserID]capping.Log{}
	for _, n := range store.top.Nodes() {
		client := admin(t, n.Addr())
		// The nodes know who is a master now, the store only who was at its last refresh.
		text, err := client.Info(t.Context(), "replication").Result()
		require.NoError(t, err)
		if topology.ParseInfo(text)["role"] != "master" {
			continue
		}
		for keys := range slices.Chunk(keysOfLogs(t, client, store.config.Namespace), 500) {
			buckets, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
				for _, key := range keys {
					p.HGetAll(t.Context(), key)
				}
				return nil
			})
			require.NoError(t, err)
			for i, bucket := range buckets {
				addLogs(logs, store, keys[i], bucket.(*redis.MapStringStringCmd).Val())
			}
		}
	}
	return logs
}

func everyNth(n, nth int) []capping.UserID {
	users := make([]capping.UserID, n)
	for i := range users {
		users[i] = capping.UserID(i * nth)
	}
	return users
}

// looked waits until a check of the sentinel keys has begun and ended.
func looked(t testing.TB, s *Store) {
	t.Helper()
	s.fleet.beat(t.Context())
}

// keysOfLogs returns the keys of the namespace's buckets on the node.
func keysOfLogs(t testing.TB, node *redis.Client, namespace string) (keys []string) {
	t.Helper()
	scan := node.Scan(t.Context(), 0, namespace+":*", 1000).Iterator()
	for scan.Next(t.Context()) {
		key := scan.Val()
		if bucketOf(key) >= 0 && !strings.Contains(key, ":m:") && !strings.Contains(key, ":c:") &&
			!strings.Contains(key, ":a:") {
			keys = append(keys, key)
		}
	}
	require.NoError(t, scan.Err())
	return keys
}

// bucketOf returns the number of the bucket with the key; -1 when the key is not a bucket's.
func bucketOf(key string) int64 {
	n, err := strconv.ParseUint(key[strings.LastIndexByte(key, ':')+1:], 36, 32)
	if err != nil {
		return -1
	}
	return int64(n)
}

// addLogs adds the logs of the store's bucket with the key.
func addLogs(logs map[capping.UserID]capping.Log, store *Store, key string, fields map[string]string) {
	partition := slices.IndexFunc(store.prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	if partition < 0 {
		return // a record
	}
	k, bucket := store.keyspace, uint64(bucketOf(key))
	for field, log := range fields {
		image := bucket<<(64-k.Depth) | uint64(partition)
		for i := range len(field) {
			image |= uint64(field[len(field)-1-i]) << (8*i + 6)
		}
		n, err := strconv.Atoi(field)
		switch {
		case field == "": // the note of the TTL
		case k.IsSpread():
			logs[capping.UserID(image)] = capping.Log(log)
		case err == nil:
			logs[capping.UserID(uint32(bucket)*k.BucketSize+uint32(n))] = capping.Log(log)
		}
	}
}
