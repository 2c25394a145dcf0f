package redisstore

import (
	"math/rand/v2"
	"slices"
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
	for _, l := range []layout{standardLayout, {bucketSize: 64, partitions: 1024}} {
		tags := l.tags()
		require.Len(t, tags, l.partitions)
		share, shares := slots/l.partitions, map[int]bool{}
		for p, tag := range tags {
			slot := int(crc16(tag)) % slots
			require.Equal(t, l.slot(p), slot)
			require.Equal(t, share/2, slot%share)
			shares[slot/share] = true
			next := l.slot((p + 1) % l.partitions)
			require.Greater(t, max(slot-next, next-slot), slots/5, "neighbours are far apart")
		}
		require.Len(t, shares, l.partitions)
	}
	// The tags are part of the stored format.
	require.Equal(t, []string{"53t", "712", "he6"}, standardLayout.tags()[:3])
	prefixes := standardLayout.prefixes("fc")
	require.Equal(t, "fc:{53t}:0", string(appendKey(nil, prefixes[0], 0)))
	require.Equal(t, "fc:{53t}:2s0", string(appendKey(nil, prefixes[0], 3600)))
}

func TestEveryUserHasAFieldOfItsOwn(t *testing.T) {
	t.Parallel()
	l := standardLayout
	seen := map[[2]uint32]bool{}
	for _, base := range []uint32{0, 1 << 20, 1<<32 - 2000} {
		for i := range uint32(2000) {
			user := base + i
			place := [2]uint32{l.bucket(user), uint32(l.field(user))}
			require.False(t, seen[place])
			seen[place] = true
			require.Equal(t, user, place[0]*l.bucketSize+place[1])
			require.Less(t, l.partition(user), l.partitions)
		}
	}
}

func TestAddressesWithoutHostAreTheNodesOwn(t *testing.T) {
	t.Parallel()
	n := &node{addr: "10.0.0.1:7000"}
	for addr, want := range map[string]string{":7001": "10.0.0.1:7001", "10.0.0.2:7001": "10.0.0.2:7001", "[::1]:7": "[::1]:7", "::1:7": "[::1]:7", "x": "x"} {
		require.Equal(t, want, n.beside(addr))
	}
}

func TestOrderIsByPartitionThenUser(t *testing.T) {
	t.Parallel()
	var o order
	rapid.Check(t, func(r *rapid.T) {
		users := rapid.SliceOfNDistinct(rapid.Uint32(), 0, 1500, rapid.ID[uint32]).Draw(r, "users")
		if rapid.Bool().Draw(r, "ascending") {
			slices.Sort(users)
		}
		o.arrange(standardLayout, users)
		covered := 0
		for i, part := range o.parts {
			require.Equal(r, covered, part.start)
			require.Greater(r, part.end, part.start)
			covered = part.end
			require.True(r, i == 0 || o.parts[i-1].partition < part.partition)
			items := o.items[part.start:part.end]
			require.True(r, slices.IsSorted(items))
			for _, item := range items {
				require.Equal(r, users[indexOf(item)], userOf(item))
				require.Equal(r, part.partition, standardLayout.partition(userOf(item)))
			}
		}
		require.Equal(r, len(users), covered)
	})
}

// What a batch costs beside the store: the layout of its users and the
// encoding of its calls.
func BenchmarkEncode(b *testing.B) {
	for name, users := range map[string][]capping.UserID{
		"ascending, one id in 27": everyNth(65_536, 27),
		"random":                  shuffled(everyNth(65_536, 27)),
	} {
		b.Run(name, func(b *testing.B) {
			s := &Store{layout: standardLayout, prefixes: standardLayout.prefixes("fc")}
			s.top = newTopology(&s.config, s.layout, newScripts())
			batch := batchOf("m", users, rolling(1, 1<<40), rolling(3, 1<<42))
			job := &filterJob{store: s, batch: batch, verdicts: make([]capping.Verdict, len(users))}
			require.NoError(b, job.prepare(0))
			r := s.newRun(job, true)
			b.ReportAllocs()
			for b.Loop() {
				r.order.arrange(s.layout, users)
				for _, part := range r.order.parts {
					for start := part.start; start < part.end; start += callUsers {
						c := r.call(part.partition, r.order.items[start:min(start+callUsers, part.end)])
						job.stamp(c)
						r.free = append(r.free, c)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(users)), "ns/user")
		})
	}
}

func shuffled(users []capping.UserID) []capping.UserID {
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(users), func(i, j int) { users[i], users[j] = users[j], users[i] })
	return users
}
