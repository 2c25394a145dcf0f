package redisstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/redisstore/script"
	"capper/internal/testkit"
)

func TestFormatOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	filter(t, s, batchOf("a", []capping.UserID{1}))
	client := admin(t, s.top.Route(s.keyspace.FormatPartition()).Addr())
	text, err := client.Get(t.Context(), s.marker.Key).Result()
	require.NoError(t, err)
	require.Equal(t, "capper log 3 least 3 bucket 190 partitions 64 epoch 2024-01-01", text)
	ttl, err := client.PTTL(t.Context(), s.marker.Key).Result()
	require.NoError(t, err)
	require.Greater(t, ttl, 7*24*time.Hour+7*24*time.Hour/64, "it outlives every log")

	other := s.config
	again, err := openInTime(t, other)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	require.NoError(t, client.Set(t.Context(), s.marker.Key, "capper log 2 bucket 64", time.Hour).Err())
	_, err = openInTime(t, other)
	require.ErrorContains(t, err,
		`the stored format marker is "capper log 2 bucket 64", but this version of capper uses "capper log 3 least 3 bucket 190`)
	testkit.FailsWith(t, "the store belongs to another build", func() error {
		_, err := open(t.Context(), other, script.Keyspace{BucketSize: 64, Partitions: 256}, script.Known)
		return err
	})
}

// A running store notices at its next renewal of the marker that another version has taken the keyspace.
func TestFormatThatChangesMeanwhileStopsTheStore(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	filter(t, s, batchOf("a", []capping.UserID{1}))
	client := admin(t, s.top.Route(s.keyspace.FormatPartition()).Addr())
	require.NoError(t, client.Set(t.Context(), s.marker.Key, "something else", time.Hour).Err())
	s.fleet.beatSoon()
	testkit.Eventually(t, func() bool { return s.halted() != nil })
	verdicts := make([]capping.Verdict, 1)
	require.ErrorContains(t, s.Filter(t.Context(), batchOf("c", []capping.UserID{1}), verdicts), "something else")
	require.Equal(t, capping.Unavailable, verdicts[0].Outcome)
	require.Equal(t, "down", s.Health(t.Context()).State)
}

// openFormats returns a store of a program that knows the given formats.
func openFormats(t *testing.T, config Config, formats script.Formats) *Store {
	t.Helper()
	var s *Store
	require.NoError(t, testkit.InTime(func() (err error) {
		s, err = open(t.Context(), config, script.Standard, formats)
		return err
	}))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// records returns a client for the server that holds the store's records.
func records(t *testing.T, s *Store) *redis.Client {
	return admin(t, s.top.Route(s.keyspace.FormatPartition()).Addr())
}

// beat runs a heartbeat of the store now.
func beat(t *testing.T, s *Store) {
	t.Helper()
	testkit.Eventually(t, func() bool {
		s.fleet.beat(t.Context())
		return s.fleet.missed.Load() == nil
	})
}

const space = "bucket 190 partitions 64 epoch 2024-01-01"

// The store moves to the newest format only after the last instance that cannot read it has left. From then on older
// programs are rejected.
func TestFormatMovesOnWhenEverybodyReadsTheNewest(t *testing.T) {
	t.Parallel()
	config := openShared(t, nil).config
	config.Namespace = namespace()
	older := openFormats(t, config, script.Known[:1])
	newer := openFormats(t, config, script.Known)
	beat(t, older)
	beat(t, newer)
	marker := func() string { return records(t, newer).Get(t.Context(), newer.marker.Key).Val() }
	require.Equal(t, "capper log 1 "+space, marker())
	require.Contains(t, newer.Health(t.Context()).Warnings, "the store is in format 1 until every instance reads "+
		"format 3: upgrade the others")
	for i, s := range []*Store{older, newer} {
		require.Equal(t, 1, count(filter(t, s, batchOf(fmt.Sprint(i), []capping.UserID{1})), capping.Allowed))
	}

	require.NoError(t, older.Close())
	beat(t, newer)
	require.Equal(t, "capper log 3 least 3 "+space, marker())
	require.Equal(t, 3, newer.fleet.seen.Load().format)
	for _, warning := range newer.Health(t.Context()).Warnings {
		require.NotContains(t, warning, "is in format")
	}
	testkit.FailsWith(t, "the logs have format 3, which a newer version of capper wrote, but this version of "+
		"capper reads format 1 only: start the newer version again", func() error {
		_, err := open(t.Context(), config, script.Standard, script.Known[:1])
		return err
	})
	require.Equal(t, 2, readLogs(t, newer)[1].Len())
}

// Programs from before the reports of formats report none: they hold the store in format 1 until they have been
// silent for a while.
func TestFormatWaitsForInstancesThatTellNone(t *testing.T) {
	t.Parallel()
	config := openShared(t, nil).config
	config.Namespace = namespace()
	require.NoError(t, openFormats(t, config, script.Known[:1]).Close())
	s := openFormats(t, config, script.Known[:1])
	client, key := records(t, s), s.marker.Key
	tell := func(ago time.Duration) {
		text := fmt.Sprint(time.Now().Add(-ago).UnixMilli(), ` {"clock_skew":"0s","replica_acks":"healthy"}`)
		require.NoError(t, client.HSet(t.Context(), key+":instances", "00ff", text).Err())
	}
	tell(0)
	require.NoError(t, s.Close())
	s = openFormats(t, config, script.Known)
	beat(t, s)
	require.Equal(t, "capper log 1 "+space, client.Get(t.Context(), key).Val())
	tell(silentFor + time.Second)
	beat(t, s)
	require.Equal(t, "capper log 3 least 3 "+space, client.Get(t.Context(), key).Val())
}

// A newer program's marker stays unchanged when it allows this program to run.
func TestMarkersOfNewerFormats(t *testing.T) {
	t.Parallel()
	s := openShared(t, nil)
	client, key := records(t, s), s.marker.Key
	goes := "capper log 4 least 3 " + space + " more 7"
	require.NoError(t, client.Set(t.Context(), key, goes, time.Hour).Err())
	beat(t, s)
	require.NoError(t, s.halted())
	require.Equal(t, goes, client.Get(t.Context(), key).Val())
	require.Greater(t, client.PTTL(t.Context(), key).Val(), time.Hour)
	for marker, says := range map[string]string{
		"capper log 4 least 4 " + space: "have format 4, which a newer version of capper wrote, but this " +
			"version of capper reads the formats 1 to 3",
		"capper log 2 least 2 " + space + "5": "the store belongs to another build",
		"capper log 2 least 2 bucket 64":      "the store belongs to another build",
		"capper log x":                        "the store belongs to another build",
	} {
		require.NoError(t, client.Set(t.Context(), key, marker, time.Hour).Err())
		_, err := openInTime(t, s.config)
		require.ErrorContains(t, err, says, marker)
		require.Equal(t, marker, client.Get(t.Context(), key).Val(), "nothing is written")
	}
}
