package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/live"
	"capper/internal/testkit"
)

var uuids = IDs{Kind: "uuid", Check: "1a2b3c4d", Users: 1_000_000}

// contents returns all keys of the namespace with their values.
func contents(t *testing.T, s *Store, namespace string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, n := range s.top.Nodes() {
		client := admin(t, n.Addr())
		scan := client.Scan(t.Context(), 0, namespace+":*", 1000).Iterator()
		for scan.Next(t.Context()) {
			value, err := client.Do(t.Context(), "dump", scan.Val()).Text()
			if err == nil { // not a replica that redirects
				all[scan.Val()] = value
			}
		}
		require.NoError(t, scan.Err())
	}
	return all
}

// A spread store keeps the logs of images that agree in 63 bits apart, in fields of raw bytes.
func TestASpreadStoreKeepsImagesApart(t *testing.T) {
	t.Parallel()
	for _, users := range []int{10_000, 1_000_000, 100_000_000} {
		s := openShared(t, func(c *Config) { c.IDs = IDs{Kind: "uuid", Check: "1a2b3c4d", Users: users} })
		const image = 0x0123456789abcdef
		people := []capping.UserID{0, 1<<64 - 1, image}
		for bit := range 64 {
			people = append(people, image^1<<bit)
		}
		for i := range people { // each has its own number of sends
			verdicts := filter(t, s, batchOf(fmt.Sprint("m", i), people[i:]))
			require.Equal(t, len(people)-i, count(verdicts, capping.Allowed))
			verdicts = filter(t, s, batchOf(fmt.Sprint("m", i), people[i:]))
			require.Equal(t, len(people)-i, count(verdicts, capping.Replayed))
		}
		logs := readLogs(t, s)
		require.Len(t, logs, len(people))
		for i, user := range people {
			require.Equal(t, i+1, logs[user].Len())
			log, err := s.Log(t.Context(), user)
			require.NoError(t, err)
			require.Equal(t, logs[user], log)
			require.Equal(t, int(uint64(user)%64), s.Locate(user).Partition)
		}
		require.NoError(t, s.Erase(t.Context(), people[7]))
		released := make([]capping.Released, len(people))
		require.NoError(t, s.Release(t.Context(), capping.Message{ID: "m0"}.Token(), 0, people, released))
		require.Equal(t, capping.ReleaseAbsent, released[7])
		require.Equal(t, len(people)-2, len(readLogs(t, s)), "the erased one, and the one with one send")
		testkit.Eventually(t, func() bool { return s.Health(t.Context()).State == "ok" })
	}
}

// The marker of a spread store names its ids. A start with others is rejected and writes nothing.
func TestStoresOfOtherIDsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has, wants IDs
		says       string
	}{
		"dense configuration": {uuids, IDs{}, "in the store are uuid (check 1a2b3c4d), but those of this " +
			"configuration are dense"},
		"dense store": {IDs{Kind: "dense"}, uuids, "in the store are dense, but those of this configuration are uuid " +
			"(check 1a2b3c4d)"},
		"another kind": {uuids, IDs{Kind: "text", Check: "1a2b3c4d"}, "in the store are uuid (check 1a2b3c4d), but " +
			"those of this configuration are text (check 1a2b3c4d)"},
		"another key": {uuids, IDs{Kind: "uuid", Check: "1a2b3c4e"}, "in the store are uuid (check 1a2b3c4d), but " +
			"those of this configuration are uuid (check 1a2b3c4e)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShared(t, func(config *Config) { config.IDs = c.has })
			filter(t, s, batchOf("a", []capping.UserID{1, 2, 3}))
			require.NoError(t, s.Close())
			servers := openShared(t, nil)
			before := contents(t, servers, s.config.Namespace)
			require.NotEmpty(t, before)
			for _, exist := range []bool{false, true} {
				config := s.config
				config.IDs, config.MustExist = c.wants, exist
				testkit.FailsWith(t, c.says, func() error {
					_, err := Open(t.Context(), config)
					return err
				})
				var refused *capping.FormatError
				_, err := openInTime(t, config)
				require.ErrorAs(t, err, &refused)
			}
			after := contents(t, servers, s.config.Namespace)
			for key, value := range before {
				require.Equal(t, value, after[key], key)
			}
			require.Len(t, after, len(before))
		})
	}
	for _, ids := range []IDs{{Kind: "uuid"}, {Kind: "uu id", Check: "1"}, {Kind: "uuid", Check: "1\n2"}} {
		_, err := Open(t.Context(), Config{Addrs: []string{"127.0.0.1:1"}, IDs: ids})
		require.ErrorContains(t, err, "ids: ")
	}
}

// Older programs reject a spread store: by the rules of format 1, which know their own marker alone, and by those since
// format 2, which compare the least version.
func TestOlderProgramsRefuseSpreadStores(t *testing.T) {
	t.Parallel()
	s := openShared(t, func(c *Config) { c.IDs = uuids })
	client, key := records(t, s), s.marker.Key
	marker := client.Get(t.Context(), key).Val()
	require.Equal(t, "capper log 4 least 4 ids uuid check 1a2b3c4d depth 8 partitions 64 epoch 2024-01-01", marker)
	for n := range script.Known {
		config := s.config
		config.IDs = IDs{}
		_, err := open(t.Context(), config, script.Standard, script.Known[:n+1])
		var refused *capping.FormatError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, marker, client.Get(t.Context(), key).Val())
		// The former text had no ids.
		refused.IDs, refused.WantIDs = "", ""
		require.ErrorContains(t, refused, "have format 4, which a newer version of capper wrote")
	}
	// A running store notices that a store of other ids has taken its place.
	other := strings.Replace(marker, "ids uuid", "ids text", 1)
	require.NoError(t, client.Set(t.Context(), key, other, 0).Err())
	s.fleet.beat(t.Context())
	require.ErrorContains(t, s.halted(), "in the store are text (check 1a2b3c4d)")
}

// A store keeps the depth with which it was made, whatever number of users its instances expect.
func TestTheDepthOfASpreadStoreStays(t *testing.T) {
	t.Parallel()
	a := openShared(t, func(c *Config) { c.IDs = uuids })
	users := imagesOf(everyNth(3000, 1))
	filter(t, a, batchOf("a", users))
	changed(t, a, live.Batch{Add: slices.Sorted(slices.Values(users[:100]))})
	marker := records(t, a).Get(t.Context(), a.marker.Key).Val()
	for _, expected := range []int{0, 1, 50_000_000} {
		config := a.config
		config.IDs.Users = expected
		b := openTest(t, config)
		require.Equal(t, a.keyspace, b.keyspace)
		require.Equal(t, a.marker, b.marker)
		require.Equal(t, len(users), count(filter(t, b, batchOf("a", users, rolling(1, week))), capping.Replayed))
		require.Equal(t, 100, b.Lists().Len(optedOut))
		beat(t, b)
		require.NoError(t, b.halted())
		require.Equal(t, marker, records(t, a).Get(t.Context(), a.marker.Key).Val())
		require.NoError(t, b.Close())
	}
	// An instance that runs already does not follow a change.
	other := script.NewMarker(script.Spread(11), uuids.marked(), a.config.Namespace, script.SpreadKnown)
	require.NoError(t, records(t, a).Set(t.Context(), a.marker.Key, other.Text, 0).Err())
	a.fleet.beat(t.Context())
	require.ErrorContains(t, a.halted(), "the store belongs to another build")
	for _, wrong := range []string{"depth 1 ", "depth 27 ", "depth 08 ", "depth 8 bucket 7 "} {
		text := "capper log 4 least 4 ids uuid check 1a2b3c4d " + wrong + "partitions 64 epoch 2024-01-01"
		require.NoError(t, records(t, a).Set(t.Context(), a.marker.Key, text, 0).Err())
		_, err := openInTime(t, a.config)
		require.ErrorContains(t, err, "the store belongs to another build", wrong)
	}
}

// Two instances that create a store at once agree about its depth.
func TestInstancesThatCreateASpreadStoreAtOnce(t *testing.T) {
	t.Parallel()
	config := openShared(t, nil).config
	config.Namespace = namespace()
	stores := make(chan *Store)
	for i := range 4 {
		config := config
		config.IDs = IDs{Kind: "uuid", Check: "1a2b3c4d", Users: 1_000_000 << (2 * i)}
		go func() {
			s, err := Open(context.WithoutCancel(t.Context()), config)
			require.NoError(t, err)
			stores <- s
		}()
	}
	var first *Store
	for range 4 {
		s := testkit.Receive(t, stores)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		if first == nil {
			first = s
		}
		require.Equal(t, first.keyspace, s.keyspace)
		require.Equal(t, 1, count(filter(t, s, batchOf(s.fleet.id, []capping.UserID{5})), capping.Allowed))
	}
	require.Equal(t, 4, readLogs(t, first)[5].Len())
}

// Changes of sets hold all bits of an image, in Redis and in every instance.
func TestLiveChangesOfImages(t *testing.T) {
	t.Parallel()
	a, b := twoStores(t, func(c *Config) { c.IDs = uuids })
	quietLive(t, a, b)
	users := []capping.UserID{5, 1<<32 - 1, 1 << 32, 1<<40 + 5, 1<<63 + 5, 1<<64 - 1}
	changed(t, a, live.Batch{Add: users})
	changed(t, b, live.Batch{Remove: users[2:4]})
	for p := range a.keyspace.Partitions {
		require.NoError(t, a.live.compact(t.Context(), p, nil))
	}
	later := openTest(t, a.config)
	require.NoError(t, b.Renew(t.Context(), nil))
	want := map[capping.UserID]live.Kind{}
	for i, user := range users {
		want[user] = live.Added
		if i == 2 || i == 3 {
			want[user] = live.Removed
		}
	}
	near := []capping.UserID{6, 1<<32 + 1, 1<<41 + 5, 1<<62 + 5, 1<<64 - 2}
	for _, s := range []*Store{b, later} {
		require.Equal(t, want, kindsOf(s, slices.Concat(users, near)))
		require.Equal(t, len(users), s.Lists().Len(optedOut))
	}
	for partition, version := range map[int]byte{5: 2, 0: 2, 63: 2} {
		fields, err := clientOf(t, a, partition).HGetAll(t.Context(), liveKey(a, partition)).Result()
		require.NoError(t, err)
		packed := 0
		for name, value := range fields {
			if strings.HasPrefix(name, "p") {
				packed++
				require.Equal(t, version, value[0], "the record holds 64 bits of a user")
			}
		}
		require.Equal(t, 1, packed)
	}
}
