package script

import (
	"math/bits"
	"strconv"
)

// Keyspace is how users are laid out over keys. It is part of the stored format.
type Keyspace struct {
	BucketSize uint32 // so many neighbouring ids share a hash, at most 256
	Partitions int    // a power of two
}

// Standard is the one in use. 190 logs of equal length, with what else a
// bucket's listpack holds, are just below a size of the allocator's; 192 would
// be just above and take up to a sixth more.
var Standard = Keyspace{BucketSize: 190, Partitions: 64}

// slotCount is how many slots a cluster has.
const slotCount = 16384

// Bucket is the number of the user's bucket.
func (k Keyspace) Bucket(user uint32) uint32 { return user / k.BucketSize }

// Field is the number of the user's field in the bucket's hash; its name is
// that number in decimal.
func (k Keyspace) Field(user uint32) byte { return byte(user % k.BucketSize) }

// Partition is the number of the user's partition.
func (k Keyspace) Partition(user uint32) int {
	return int(k.Bucket(user) & uint32(k.Partitions-1))
}

// AppendKey appends the key of a bucket to its partition's prefix: the number
// is in base 36, so that most keys fit 16 bytes.
func AppendKey(dst []byte, prefix string, bucket uint32) []byte {
	return strconv.AppendUint(append(dst, prefix...), uint64(bucket), 36)
}

// tags are the hash tags of the partitions: for each one the shortest first
// text with its slot.
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

// Prefixes are the keys' beginnings by partition: "fc:{tag}:".
func (k Keyspace) Prefixes(namespace string) []string {
	prefixes := k.tags()
	for p, tag := range prefixes {
		prefixes[p] = namespace + ":{" + tag + "}:"
	}
	return prefixes
}

// FormatPartition is the partition of the format marker: one beyond those of the logs,
// so that every keyspace finds it under the same key.
func (k Keyspace) FormatPartition() int { return k.Partitions }

// FormatTag is the hash tag of the format marker and of what stands beside it.
const FormatTag = "format"

// Slot is the cluster slot of a partition: the middle of one of as many equal
// shares of all slots, so that any even distribution of slots is one of
// partitions. A partition's share is its number with the bits reversed, so that
// neighbouring buckets are on different masters.
func (k Keyspace) Slot(partition int) int {
	if partition == k.FormatPartition() {
		return int(crc16(FormatTag)) % slotCount
	}
	share := slotCount / k.Partitions
	reversed := int(bits.Reverse16(uint16(partition))) >> (16 - bits.Len16(uint16(k.Partitions-1)))
	return reversed*share + share/2
}

// PartitionOf is the partition of what is stored under a text and not under a user id, such as a caller's budget.
func (k Keyspace) PartitionOf(text string) int { return int(crc16(text)) % k.Partitions }

// crc16 is the CRC of the Redis Cluster specification (XMODEM).
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
