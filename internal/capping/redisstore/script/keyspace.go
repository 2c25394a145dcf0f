package script

import (
	"math/bits"
	"strconv"
)

// Keyspace describes how users are distributed over keys. It is part of the stored format.
type Keyspace struct {
	BucketSize uint32 // number of neighbouring ids in one hash, at most 256
	Partitions int    // a power of two
}

// Standard is the keyspace of every store. A bucket of 190 logs of equal length is just smaller than a size class of
// the memory allocator. A bucket of 192 would be just larger, and take up to a sixth more memory.
var Standard = Keyspace{BucketSize: 190, Partitions: 64}

// slotCount is the number of slots in a Redis Cluster.
const slotCount = 16384

// Bucket returns the number of the user's bucket.
func (k Keyspace) Bucket(user uint32) uint32 { return user / k.BucketSize }

// Field returns the number of the user's field in the bucket's hash. The field's name is that number in decimal.
func (k Keyspace) Field(user uint32) byte { return byte(user % k.BucketSize) }

// Partition returns the number of the user's partition.
func (k Keyspace) Partition(user uint32) int {
	return int(k.Bucket(user) & uint32(k.Partitions-1))
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
