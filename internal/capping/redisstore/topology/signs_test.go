package topology

import (
	"capper/internal/testcluster"
	_ "embed"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/sign-without-mark.lua
var signWithoutMark string

//go:embed testdata/sign-without-note.lua
var signWithoutNote string

// signed returns a topology with all sentinel keys, and a client of the server with partition 0.
func signed(t *testing.T) (*Topology, *redis.Client) {
	t.Helper()
	top := start(t, testcluster.Shared(t))
	require.True(t, top.LookAtSigns(t.Context(), Look{Make: true, Life: time.Hour}))
	require.Empty(t, top.Lost())
	return top, top.Route(0).Client()
}

// looks checks the sentinel keys like a heartbeat, and returns the cause of partition 0's
// quarantine.
func looks(t *testing.T, top *Topology) string {
	t.Helper()
	require.True(t, top.LookAtSigns(t.Context(), Look{Life: time.Hour}))
	if bar := top.Bar(0); bar != nil {
		return bar.Reason
	}
	return ""
}

// TestSignsAndMarksThatContradictEachOther checks that a sentinel key and a mark that contradict
// each other quarantine the partition until it starts again.
func TestSignsAndMarksThatContradictEachOther(t *testing.T) {
	t.Parallel()
	top, client := signed(t)
	keys := top.config.Partitions[0]
	at := func() int64 {
		n, err := client.HGet(t.Context(), keys.markKey(), "at").Int64()
		require.NoError(t, err)
		return n
	}
	early := fmt.Sprint(time.Now().Add(-time.Minute).UnixMilli())
	for name, test := range map[string]struct {
		damage func() error
		want   string
	}{
		"nothing":       {func() error { return nil }, ""},
		"the mark went": {func() error { return client.Del(t.Context(), keys.markKey()).Err() }, Dropped},
		"the mark is old": {func() error {
			return client.HSet(t.Context(), keys.markKey(), "at", early).Err()
		}, Dropped},
		"the sign went": {func() error { return client.Del(t.Context(), keys.signKey()).Err() }, gone},
		"written down": {func() error {
			return client.Set(t.Context(), keys.signKey(), fmt.Sprintf("%d.75", at()), time.Hour).Err()
		}, Dropped},
		"both are older than what another instance began anew": {func() error {
			top.points.told(0, point{anewOf(t, client, keys) + 1, 1})
			return nil
		}, Older},
		"only the step of the sentinel key saw that both are older": {func() error {
			known := point{anewOf(t, client, keys), at()}
			require.NoError(t, client.HSet(t.Context(), keys.markKey(), "at", early).Err())
			require.NoError(t, client.Set(t.Context(), keys.signKey(), early+".5", time.Hour).Err())
			return signScript.Run(t.Context(), client, keys.signKeys(), stepSign, 0, 1000, time.Hour.Milliseconds(),
				known.anew, known.at).Err()
		}, Older},
	} {
		require.NoError(t, test.damage(), name)
		require.Equal(t, test.want, looks(t, top), name)
		require.Equal(t, test.want, looks(t, top), "%s: a look mends nothing", name)
		top.LookAtSigns(t.Context(), Look{Life: time.Hour, Accept: map[int]bool{0: true}})
		require.Empty(t, looks(t, top), "%s: begun anew", name)
	}
}

// TestTheMarkOutlastsTheSign checks that the mark outlives the sentinel key; a mark that expired
// first would look like a dropped one.
func TestTheMarkOutlastsTheSign(t *testing.T) {
	t.Parallel()
	top, client := signed(t)
	sign, mark := client.PTTL(t.Context(), top.config.Partitions[0].signKey()).Val(),
		client.PTTL(t.Context(), top.config.Partitions[0].markKey()).Val()
	require.Greater(t, mark, sign+12*time.Hour)
}

// TestSignsOfInstancesThatKnowNoMarks checks that instances of the version before marks can check
// the same sentinel keys in turns with newer instances.
func TestSignsOfInstancesThatKnowNoMarks(t *testing.T) {
	t.Parallel()
	top, client := signed(t)
	keys := top.config.Partitions[0]
	older := redis.NewScript(signWithoutMark)
	olderLooks := func() string {
		reply, err := older.Run(t.Context(), client, []string{keys.signKey()}, 0, 1000,
			time.Hour.Milliseconds()).StringSlice()
		require.NoError(t, err)
		return reply[0]
	}
	for range 3 {
		require.Equal(t, "found", olderLooks())
		require.Empty(t, looks(t, top))
	}
	require.Equal(t, "found", olderLooks())
	value, err := strconv.ParseInt(client.Get(t.Context(), keys.signKey()).Val(), 10, 64)
	require.NoError(t, err, "without a fraction")
	require.WithinDuration(t, time.Now(), time.UnixMilli(value), time.Minute)

	// The older instance's sentinel key says nothing about the mark, so a newer instance uses its
	// own memory.
	require.NoError(t, client.HSet(t.Context(), keys.markKey(), "at", value-60_000).Err())
	top.points.told(0, point{anewOf(t, client, keys), value - 1})
	require.Equal(t, "found", olderLooks())
	require.Equal(t, Older, looks(t, top))
}

// TestAnOlderStateIsWrittenDown checks that an older state found by one instance also counts for
// instances that start later, until the partition starts again. Instances of earlier versions do
// not end the quarantine either.
func TestAnOlderStateIsWrittenDown(t *testing.T) {
	t.Parallel()
	top, client := signed(t)
	keys := top.config.Partitions[0]
	other := start(t, testcluster.Shared(t))
	other.config.Partitions, other.signReads = top.config.Partitions, top.signReads
	require.Empty(t, looks(t, other), "all is there")
	before, err := client.HGetAll(t.Context(), keys.markKey()).Result()
	require.NoError(t, err)
	require.NotContains(t, before, "older", "nothing is written down")

	anew := anewOf(t, client, keys)
	early := anew + 1
	require.NoError(t, client.HSet(t.Context(), keys.markKey(), "at", early).Err())
	require.NoError(t, client.Set(t.Context(), keys.signKey(), fmt.Sprint(early, ".5"), time.Hour).Err())
	top.points.told(0, point{anew, early + 60_000})
	require.Equal(t, Older, looks(t, top))

	noNote := redis.NewScript(signWithoutNote)
	for step := 1; step <= 2; step++ { // a version that knows marks quarantines the partition and renews nothing
		reply, err := noNote.Run(t.Context(), client, keys.signKeys(), step, 1, 1000, time.Hour.Milliseconds(), 0, 0).
			StringSlice()
		require.NoError(t, err)
		require.Equal(t, "dropped", reply[0])
	}
	require.NoError(t, redis.NewScript(signWithoutMark).Run(t.Context(), client, []string{keys.signKey()}, 0, 1000,
		time.Hour.Milliseconds()).Err()) // a version without marks writes the key without a fraction

	for range 3 {
		require.Equal(t, Older, looks(t, other))
		require.Contains(t, other.Bar(0).Error(), "its last 1m0s or more are lost")
		require.Equal(t, Older, looks(t, top))
	}
	require.Equal(t, fmt.Sprint(early), client.HGet(t.Context(), keys.markKey(), "at").Val(), "nothing was renewed")

	other.LookAtSigns(t.Context(), Look{Life: time.Hour, Accept: map[int]bool{0: true}})
	require.Empty(t, looks(t, other), "begun anew")
	require.Empty(t, looks(t, top))
}

// TestBeginningsAreInOrder checks that a new start of a partition is later than every earlier
// start, even after a clock was ahead.
func TestBeginningsAreInOrder(t *testing.T) {
	t.Parallel()
	top, client := signed(t)
	keys := top.config.Partitions[0]
	ahead := time.Now().Add(time.Hour).UnixMilli()
	require.NoError(t, client.HSet(t.Context(), keys.markKey(), "anew", ahead).Err())
	require.Empty(t, looks(t, top))
	require.NoError(t, client.Del(t.Context(), keys.signKey(), keys.markKey()).Err())
	require.Equal(t, gone, looks(t, top))
	top.LookAtSigns(t.Context(), Look{Life: time.Hour, Accept: map[int]bool{0: true}})
	require.Empty(t, looks(t, top))
	require.Greater(t, anewOf(t, client, keys), ahead)
}

func anewOf(t *testing.T, client *redis.Client, keys Partition) int64 {
	t.Helper()
	n, err := client.HGet(t.Context(), keys.markKey(), "anew").Int64()
	require.NoError(t, err)
	return n
}

// TestPointsSettle checks that a point becomes settled only after a while.
func TestPointsSettle(t *testing.T) {
	t.Parallel()
	h := points{partitions: make([]progress, 1)}
	now, on := time.Now(), belief{run: new(string)}
	h.reached(0, point{5, 100}, on, now)
	require.Equal(t, point{5, 0}, h.settled(0), "only who begins anew later goes on from there")
	h.reached(0, point{5, 110}, on, now.Add(time.Second))
	require.Equal(t, point{5, 0}, h.settled(0))
	h.reached(0, point{5, 120}, on, now.Add(10*time.Second))
	require.Equal(t, point{5, 100}, h.settled(0))
	h.told(0, point{5, 90})
	require.Equal(t, point{5, 100}, h.settled(0), "it never goes back")
	h.told(0, point{5, 115})
	require.Equal(t, point{5, 115}, h.settled(0))
	h.reached(0, point{7, 3}, on, now.Add(20*time.Second))
	require.Equal(t, point{7, 0}, h.settled(0), "somebody began anew")

	restarted := belief{run: new(string)}
	h.reached(0, point{7, 50}, restarted, now.Add(30*time.Second))
	require.Equal(t, point{7, 0}, h.settled(0), "the server may have lost the point with its last second")
	h.reached(0, point{7, 60}, restarted, now.Add(40*time.Second))
	require.Equal(t, point{7, 50}, h.settled(0))
}

// TestKeepersAreOnOtherMasters checks that another master stores a partition's point whenever
// several masters of similar size exist.
func TestKeepersAreOnOtherMasters(t *testing.T) {
	t.Parallel()
	var partitions []Partition
	for p := range 64 {
		partitions = append(partitions, Partition{Slot: p*256 + 128})
	}
	partitions = append(partitions, Partition{Slot: 16100})
	keepers := keepersOf(partitions)
	for masters := 2; masters <= 20; masters++ {
		for p, q := range keepers {
			require.NotEqual(t, partitions[p].Slot*masters/16384, partitions[q].Slot*masters/16384,
				"partition %d of %d masters", p, masters)
		}
	}
	require.Equal(t, []int{-1}, keepersOf(partitions[:1]))
}
