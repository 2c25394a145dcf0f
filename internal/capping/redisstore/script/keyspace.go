package script

import (
	"math/bits"
	"strconv"

	"capper/internal/capping"
)

// A Keyspace describes the distribution of a store's users over Redis keys. The keyspace is part of the stored format.
// There are two layouts of keyspaces, "dense" and "spread":
//
//   - Dense, for ids from 0 to 4294967295: a bucket holds BucketSize neighbouring ids, and a partition is every 64th
//     bucket. In the dense layout, the hash field of a user is the position of the id in its bucket.
//   - Spread, for ids whose id images (64-bit numbers that stand for ids) look random (see package ids): the lower bits
//     of the image choose the partition. In the spread layout, the upper Depth bits of the id image choose the bucket.
//     In the spread layout, the hash field of a user is the middle part of the id image, as raw bytes. The middle part
//     of the id image includes all bits that do not choose the bucket or the partition.
type Keyspace struct {
	BucketSize uint32 // number of neighbouring ids in one hash, at most 256; 0 in a spread keyspace
	Partitions int    // a power of two
	// Depth is the number of an id image's upper bits that choose the bucket; 0 in a dense keyspace. In a spread
	// keyspace, a partition has 1<<Depth buckets.
	Depth int
}

// Standard is the keyspace of every store with dense ids (32-bit integers). Redis' memory allocator has size classes. A
// bucket with 190 logs of equal length is just smaller than one size class of the allocator. With 192 logs, a bucket
// would be just larger than the size class, and would take up to a sixth more memory.
var Standard = Keyspace{BucketSize: 190, Partitions: 64}

// slotCount is the number of hash slots in a Redis Cluster.
const slotCount = 16384

// The constants from spreadPartitions to unknownUsers describe spread keyspaces, that is, stores whose ids are not
// dense. With the depth MaxDepth, the number of the partition and the number of the bucket have 32 bits together.
const (
	spreadPartitions = 64
	partitionBits    = 6
	imageBits        = 64

	// MinDepth and MaxDepth are the bounds of Keyspace.Depth in spread keyspaces.
	MinDepth, MaxDepth = 2, 32 - partitionBits
	shortFieldDepth    = 10 // from this depth on, fields have 6 bytes instead of 7

	// leastBucketUsers is the least expected number of users in a bucket of a new store with ids that are not dense. A
	// bucket of a new store has less than twice as many users. Small buckets cost memory, and with more than 256 users
	// Redis gives up its compact encoding of the hash.
	leastBucketUsers = 50
	unknownUsers     = 4_000_000 // assumed number of users of a store whose number of users is not known
)

// Spread returns the keyspace of a store for ids that are not dense. The argument "depth" of Spread is the number of
// bits of an id image (64-bit number that stands for the id) that choose the bucket.
func Spread(depth int) Keyspace { return Keyspace{Partitions: spreadPartitions, Depth: depth} }

// DepthFor returns the depth (number of bits that choose the bucket) of a new store with a spread keyspace, for the
// expected number of users. The argument "users" of DepthFor is 0 if the number of users is not known.
func DepthFor(users int) int {
	if users <= 0 {
		users = unknownUsers
	}
	return min(max(MinDepth, bits.Len(uint(users/(spreadPartitions*leastBucketUsers)))-1), MaxDepth)
}

// IsSpread reports whether the keyspace has the spread layout, which is for ids that are not dense.
func (k Keyspace) IsSpread() bool { return k.Depth > 0 }

// fieldSize returns the size in bytes of a user's hash field in a spread keyspace (for ids that are not dense). The
// hash field must contain all bits of the id image (64-bit number that stands for the id) that do not choose the bucket
// or the partition.
func (k Keyspace) fieldSize() int {
	if k.Depth < shortFieldDepth {
		return 7
	}
	return 6
}

// The method "place" returns the 32 bits of the user's id or id image (64-bit number that stands for the id) that
// determine the partition and the bucket. For a dense id (32-bit integer), the result of place is the id itself.
func (k Keyspace) place(user capping.UserID) uint32 {
	if k.Depth == 0 {
		return uint32(user)
	}
	image := uint64(user)
	return uint32(image>>(imageBits-k.Depth)<<partitionBits | image%spreadPartitions)
}

// orderShift returns the number of lower bits that a batch ignores in the users' places when it sorts the users of a
// partition.
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

// Bucket returns the number of the bucket that holds the user's log.
func (k Keyspace) Bucket(user capping.UserID) uint32 { return k.bucketAt(k.place(user)) }

// Partition returns the number of the partition that holds the user's log.
func (k Keyspace) Partition(user capping.UserID) int { return k.partitionAt(k.place(user)) }

// BucketOf returns the number of a user's bucket. The argument of BucketOf is the user's item in a Plan.
func (k Keyspace) BucketOf(item uint64) uint32 { return k.bucketAt(placeOf(item)) }

// HashFields returns the largest number of fields in a hash. Redis should keep its compact encoding of a bucket (hash
// of users' logs) up to this number of fields.
func (k Keyspace) HashFields() int {
	if k.IsSpread() {
		return 256 // the buckets of one store differ in size, and grow with its users
	}
	return int(k.BucketSize) + 1
}

// appendField appends the hash field of one user to dst, in the form in which the scripts read it. The argument "item"
// of appendField stands for one user of a batch. In the dense layout, the scripts read one byte with the number of the
// hash field. In the spread layout, the scripts read the raw bytes of the hash field. The argument "users" of
// appendField holds all users of the batch to which the item belongs.
func (k Keyspace) appendField(dst []byte, item uint64, users []capping.UserID) []byte {
	if k.IsSpread() {
		return appendUint(dst, uint64(users[indexOf(item)])>>partitionBits, k.fieldSize())
	}
	return append(dst, byte(placeOf(item)%k.BucketSize))
}

// FieldName returns the name of a user's field in the Redis hash of the user's bucket. In the dense layout, the name of
// a field is a decimal number; in the spread layout, the name is raw bytes.
func (k Keyspace) FieldName(user capping.UserID) string {
	if k.IsSpread() {
		return string(appendUint(nil, uint64(user)>>partitionBits, k.fieldSize()))
	}
	return strconv.Itoa(int(k.place(user) % k.BucketSize))
}

// AppendKey appends the Redis key of a bucket of users: the prefix of the partition and the number of the bucket. The
// number of the bucket is written in base 36, so that most keys fit in 16 bytes.
func AppendKey(dst []byte, prefix string, bucket uint32) []byte {
	return strconv.AppendUint(append(dst, prefix...), uint64(bucket), 36)
}

// The method "tags" returns the hash tag of each partition: the first of the shortest texts that Redis maps to the hash
// slot of the partition.
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

// Prefixes returns, for each partition, the text with which its keys begin, such as "fc:{tag}:".
func (k Keyspace) Prefixes(namespace string) []string {
	prefixes := k.tags()
	for p, tag := range prefixes {
		prefixes[p] = namespace + ":{" + tag + "}:"
	}
	return prefixes
}

// FormatPartition returns the number of the partition with the format marker (value that names the version of the
// stored format). The number of the marker's partition is the number of the last partition of users plus 1. The marker
// therefore has the same key in every keyspace.
func (k Keyspace) FormatPartition() int { return k.Partitions }

// FormatTag is the hash tag in two kinds of keys: the key of the format marker, and the keys of the records that all
// instances share.
const FormatTag = "format"

// Slot returns the cluster's hash slot for a partition. To choose a slot for each partition, the hash slots are divided
// into shares of equal size, one share for each partition. A partition's slot is in the middle of its share. Masters
// with equal numbers of hash slots then also have equal numbers of partitions. The number of the share is the number of
// the partition with its bits reversed, so that neighbouring buckets are on different masters.
func (k Keyspace) Slot(partition int) int {
	if partition == k.FormatPartition() {
		return int(crc16(FormatTag)) % slotCount
	}
	share := slotCount / k.Partitions
	reversed := int(bits.Reverse16(uint16(partition))) >> (16 - bits.Len16(uint16(k.Partitions-1)))
	return reversed*share + share/2
}

// PartitionOf returns the partition of data that belongs to a text. For example, the text of a client's rate budget is
// the client's name.
func (k Keyspace) PartitionOf(text string) int { return int(crc16(text)) % k.Partitions }

// PacerPartition returns the partition that holds the pacers of a group. The group "" stands for pacers without a
// group.
func (k Keyspace) PacerPartition(group string) int {
	if group == "" {
		return k.PartitionOf("pacers")
	}
	return k.PartitionOf("pacers/" + group)
}

// crc16 returns the checksum of a key (CRC, XMODEM) by which Redis Cluster chooses the hash slot.
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
