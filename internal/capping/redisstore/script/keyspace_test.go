package script

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"capper/internal/capping"
)

func TestCRC16(t *testing.T) {
	t.Parallel()
	require.Equal(t, uint16(0x31C3), crc16("123456789"), "the check value of the cluster specification")
}

func TestPartitionsAreSpreadEvenlyOverSlots(t *testing.T) {
	t.Parallel()
	for _, l := range []Keyspace{Standard, Spread(16), {BucketSize: 64, Partitions: 1024}} {
		tags := l.tags()
		require.Len(t, tags, l.Partitions)
		share, shares := slotCount/l.Partitions, map[int]bool{}
		for p, tag := range tags {
			slot := int(crc16(tag)) % slotCount
			require.Equal(t, l.Slot(p), slot)
			require.Equal(t, share/2, slot%share)
			shares[slot/share] = true
			next := l.Slot((p + 1) % l.Partitions)
			require.Greater(t, max(slot-next, next-slot), slotCount/5, "neighbours are far apart")
		}
		require.Len(t, shares, l.Partitions)
	}
	// The tags are part of the stored format.
	require.Equal(t, []string{"53t", "712", "he6"}, Standard.tags()[:3])
	prefixes := Standard.Prefixes("fc")
	require.Equal(t, "fc:{53t}:0", string(AppendKey(nil, prefixes[0], 0)))
	require.Equal(t, "fc:{53t}:2s0", string(AppendKey(nil, prefixes[0], 3600)))
}

func TestEveryUserHasAFieldOfItsOwn(t *testing.T) {
	t.Parallel()
	k := Standard
	seen := map[string]bool{}
	for _, base := range []capping.UserID{0, 1 << 20, 1<<32 - 2000} {
		for i := range capping.UserID(2000) {
			user := base + i
			bucket, name := k.Bucket(user), k.FieldName(user)
			require.False(t, seen[fmt.Sprint(bucket, " ", name)])
			seen[fmt.Sprint(bucket, " ", name)] = true
			require.Equal(t, user, userAt(k, k.Partition(user), bucket, name))
			require.Less(t, k.Partition(user), k.Partitions)
			require.Equal(t, int(bucket)%k.Partitions, k.Partition(user))
			field := k.appendField(nil, k.Item(user, 0), []capping.UserID{user})
			require.Equal(t, name, strconv.Itoa(int(field[0])))
			require.Len(t, field, 1)
		}
	}
}

// userAt returns the user of a field.
func userAt(k Keyspace, partition int, bucket uint32, name string) capping.UserID {
	if !k.IsSpread() {
		n, _ := strconv.Atoi(name)
		return capping.UserID(bucket*k.BucketSize + uint32(n))
	}
	image := uint64(bucket)<<(64-k.Depth) | uint64(partition)
	for i := range len(name) {
		image |= uint64(name[len(name)-1-i]) << (8*i + 6)
	}
	return capping.UserID(image)
}

// Partition, bucket and field determine all 64 bits of an image, whatever the depth.
func TestAllBitsOfAnImageCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		k := Spread(rapid.IntRange(MinDepth, MaxDepth).Draw(r, "depth"))
		user := capping.UserID(rapid.Uint64().Draw(r, "image"))
		if rapid.Bool().Draw(r, "few bits") {
			user = 1 << rapid.IntRange(0, 63).Draw(r, "bit")
		}
		item := k.Item(user, 7)
		name := k.FieldName(user)
		require.Equal(r, user, userAt(k, k.Partition(user), k.Bucket(user), name))
		require.Equal(r, name, string(k.appendField(nil, item, append(make([]capping.UserID, 7), user))))
		require.Len(r, name, map[bool]int{true: 7, false: 6}[k.Depth < 10])
		require.Equal(r, k.Bucket(user), k.BucketOf(item))
		require.Equal(r, 7, indexOf(item))
		require.Less(r, k.Bucket(user), uint32(1)<<k.Depth)
		require.Equal(r, int(uint64(user)%64), k.Partition(user), "the lower bits")
	})
}

// The field and the partition of an image are the same at every depth that has fields of its size, so that a bucket can
// be divided.
func TestPlacesOfAnImage(t *testing.T) {
	t.Parallel()
	const image = capping.UserID(0x0123456789abcdef)
	for depth, want := range map[int]string{
		8: "47:1:\x04\x8d\x15\x9e\x26\xaf\x37", 10: "47:4:\x8d\x15\x9e\x26\xaf\x37",
		16: "47:291:\x8d\x15\x9e\x26\xaf\x37", 26: "47:298261:\x8d\x15\x9e\x26\xaf\x37",
	} {
		k := Spread(depth)
		require.Equal(t, want, fmt.Sprintf("%d:%d:%s", k.Partition(image), k.Bucket(image), k.FieldName(image)))
	}
	require.Equal(t, []int{2, 2, 8, 9, 10, 11, 16, 26}, []int{
		DepthFor(1), DepthFor(20_000), DepthFor(1_000_000), DepthFor(2_000_000), DepthFor(0), DepthFor(10_000_000),
		DepthFor(270_000_000), DepthFor(1 << 60),
	})
}
