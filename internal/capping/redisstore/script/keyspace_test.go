package script

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCRC16(t *testing.T) {
	t.Parallel()
	require.Equal(t, uint16(0x31C3), crc16("123456789"), "the check value of the cluster specification")
}

func TestPartitionsAreSpreadEvenlyOverSlots(t *testing.T) {
	t.Parallel()
	for _, l := range []Keyspace{Standard, {BucketSize: 64, Partitions: 1024}} {
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
	l := Standard
	seen := map[[2]uint32]bool{}
	for _, base := range []uint32{0, 1 << 20, 1<<32 - 2000} {
		for i := range uint32(2000) {
			user := base + i
			place := [2]uint32{l.Bucket(user), uint32(l.Field(user))}
			require.False(t, seen[place])
			seen[place] = true
			require.Equal(t, user, place[0]*l.BucketSize+place[1])
			require.Less(t, l.Partition(user), l.Partitions)
		}
	}
}
