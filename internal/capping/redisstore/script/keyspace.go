package script

import (
	"math/bits"
	"strconv"

	"capper/internal/capping"
)

// Keyspace describes how users are distributed over keys. It is part of the stored format. There are two layouts:
//
//   - Dense, for ids from 0 to 4294967295: a bucket holds BucketSize neighbouring ids, and a partition is every 64th
//     bucket. A field is the id's place in its bucket.
//   - Spread, for ids whose 64-bit images look random (see the package ids): the lower bits of an image choose the
//     partition and its upper Depth bits the bucket. A field is the bits between, as raw bytes.
type Keyspace struct {
	BucketSize uint32 // number of neighbouring ids in one hash, at most 256; 0 in a spread keyspace
	Partitions int    // a power of two
	// Depth is the number of an image's upper bits that choose its bucket; 0 in a dense keyspace. A partition has
	// 1<<Depth buckets.
	Depth int
}

// Standard is the keyspace of every store with dense ids. A bucket of 190 logs of equal length is just smaller than a
// size class of the memory allocator. A bucket of 192 would be just larger, and take up to a sixth more memory.
var Standard = Keyspace{BucketSize: 190, Partitions: 64}

// slotCount is the number of slots in a Redis Cluster.
const slotCount = 16384

// The constants below describe spread keyspaces. With MaxDepth the partition and the bucket together have 32 bits.
const (
	spreadPartitions = 64
	partitionBits    = 6
	imageBits        = 64

	// MinDepth and MaxDepth are the bounds of Keyspace.Depth.
	MinDepth, MaxDepth = 2, 32 - partitionBits
	shortFieldDepth    = 10 // from this depth on, fields have 6 bytes instead of 7

	// leastBucketUsers is the least number of users in a bucket of a new store, which has less than twice as many.
	// Small buckets cost memory, and with more than 256 users Redis gives up the compact encoding.
	leastBucketUsers = 50
	unknownUsers     = 4_000_000 // users of a store for which nobody knows their number
)

// Spread returns the keyspace of a store for ids that are not dense, with the given number of an image's bits for its
// bucket.
func Spread(depth int) Keyspace { return Keyspace{Partitions: spreadPartitions, Depth: depth} }

// DepthFor returns the depth of a new spread store for the expected number of users; 0 means that nobody knows it.
func DepthFor(users int) int {
	if users <= 0 {
		users = unknownUsers
	}
	return min(max(MinDepth, bits.Len(uint(users/(spreadPartitions*leastBucketUsers)))-1), MaxDepth)
}

// IsSpread reports whether the keyspace has the spread layout.
func (k Keyspace) IsSpread() bool { return k.Depth > 0 }

// fieldSize returns the number of bytes of a field in a spread keyspace. They hold at least the bits between those of
// the bucket and those of the partition, so that all bits of an image count.
func (k Keyspace) fieldSize() int {
	if k.Depth < shortFieldDepth {
		return 7
	}
	return 6
}

// place returns a number of 32 bits that determines the user's partition and bucket. The place of a dense id is the id.
func (k Keyspace) place(user capping.UserID) uint32 {
	if k.Depth == 0 {
		return uint32(user)
	}
	image := uint64(user)
	return uint32(image>>(imageBits-k.Depth)<<partitionBits | image%spreadPartitions)
}

// orderShift returns the number of a place's lower bits that do not count for the order of a partition's users.
func (k Keyspace) orderShift() int {
	if k.IsSpread() {
		return partitionBits
	}
	return 0
}

func (k Keyspace) bucketAt(place uint32) uint32 {
	if k.Depth == 0 {
		return place / k.BucketSize
	}
	return place >> partitionBits
}

func (k Keyspace) partitionAt(place uint32) int {
	if k.Depth == 0 {
		place /= k.BucketSize
	}
	return int(place & uint32(k.Partitions-1))
}

// Bucket returns the number of the user's bucket.
func (k Keyspace) Bucket(user capping.UserID) uint32 { return k.bucketAt(k.place(user)) }

// Partition returns the number of the user's partition.
func (k Keyspace) Partition(user capping.UserID) int { return k.partitionAt(k.place(user)) }

// BucketOf returns the number of the bucket of an item's user.
func (k Keyspace) BucketOf(item uint64) uint32 { return k.bucketAt(placeOf(item)) }

// HashFields returns the number of fields up to which a bucket has to stay in Redis' compact encoding.
func (k Keyspace) HashFields() int {
	if k.IsSpread() {
		return 256 // the buckets of one store differ, and grow with its users
	}
	return int(k.BucketSize) + 1
}

// appendField appends the field of an item's user as the scripts read it: the number of a dense field, and the raw
// bytes of a spread one. users are the users of the item's batch.
func (k Keyspace) appendField(dst []byte, item uint64, users []capping.UserID) []byte {
	if k.IsSpread() {
		return appendUint(dst, uint64(users[indexOf(item)])>>partitionBits, k.fieldSize())
	}
	return append(dst, byte(placeOf(item)%k.BucketSize))
}

// FieldName returns the name of the user's field in the bucket's hash: the number of a dense field in decimal, and the
// raw bytes of a spread one.
func (k Keyspace) FieldName(user capping.UserID) string {
	if k.IsSpread() {
		return string(appendUint(nil, uint64(user)>>partitionBits, k.fieldSize()))
	}
	return strconv.Itoa(int(k.place(user) % k.BucketSize))
}

// AppendKey appends the key of a bucket: the partition's prefix and the bucket's number. The number is in base 36, so
// that most keys fit in 16 bytes.
func AppendKey(dst []byte, prefix string, bucket uint32) []byte {
	return strconv.AppendUint(append(dst, prefix...), uint64(bucket), 36)
}

// tags returns the hash tags of the partitions: for each partition the first of the shortest texts with its slot.
func (k Keyspace) tags() []string {
	tags := make([]string, k.Partitions)
	partitions := make(map[int]int, k.Partitions)
	for p := range k.Partitions {
		partitions[k.Slot(p)] = p
	}
	for n := int64(0); len(partitions) > 0; n++ {
		tag := strconv.FormatInt(n, 36)
		slot := int(crc16(tag)) % slotCount
		if p, wanted := partitions[slot]; wanted {
			tags[p] = tag
			delete(partitions, slot)
		}
	}
	return tags
}

// Prefixes returns the key prefix "fc:{tag}:" of each partition.
func (k Keyspace) Prefixes(namespace string) []string {
	prefixes := k.tags()
	for p, tag := range prefixes {
		prefixes[p] = namespace + ":{" + tag + "}:"
	}
	return prefixes
}

// FormatPartition returns the partition of the format marker. FormatPartition follows the partitions of the logs, so
// that every keyspace finds the marker under the same key.
func (k Keyspace) FormatPartition() int { return k.Partitions }

// FormatTag is the hash tag of the format marker and of the shared records.
const FormatTag = "format"

// Slot returns the cluster slot of a partition. All slots are divided into equal shares, one per partition, and the
// slot is the middle of a share. An even distribution of slots therefore distributes the partitions evenly. A
// partition's share is its number with the bits reversed, so that neighbouring buckets are on different masters.
func (k Keyspace) Slot(partition int) int {
	if partition == k.FormatPartition() {
		return int(crc16(FormatTag)) % slotCount
	}
	share := slotCount / k.Partitions
	reversed := int(bits.Reverse16(uint16(partition))) >> (16 - bits.Len16(uint16(k.Partitions-1)))
	return reversed*share + share/2
}

// PartitionOf returns the partition of data that is stored under a text, such as a client's rate budget.
func (k Keyspace) PartitionOf(text string) int { return int(crc16(text)) % k.Partitions }

// PacerPartition returns the partition of a group of pacers; "" is the common group.
func (k Keyspace) PacerPartition(group string) int {
	if group == "" {
		return k.PartitionOf("pacers")
	}
	return k.PartitionOf("pacers/" + group)
}

// crc16 returns the CRC (XMODEM) that the Redis Cluster specification defines for keys.
func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
