package redisstore

import (
	"math/bits"
	"strconv"
)

// layout is how users are laid out over keys. It is part of the stored format.
type layout struct {
	bucketSize uint32 // so many neighbouring ids share a hash, at most 256
	partitions int    // a power of two
}

// standardLayout is the one in use. 190 logs of equal length, with what else a
// bucket's listpack holds, are just below a size of the allocator's; 192 would
// be just above and take up to a sixth more.
var standardLayout = layout{bucketSize: 190, partitions: 64}

const slots = 16384

func (l layout) bucket(user uint32) uint32 { return user / l.bucketSize }

// field is the number of the user's field in the bucket's hash; its name is
// that number in decimal.
func (l layout) field(user uint32) byte { return byte(user % l.bucketSize) }

func (l layout) partition(user uint32) int {
	return int(l.bucket(user) & uint32(l.partitions-1))
}

// appendKey appends the key of a bucket to its partition's prefix: the number
// is in base 36, so that most keys fit 16 bytes.
func appendKey(dst []byte, prefix string, bucket uint32) []byte {
	return strconv.AppendUint(append(dst, prefix...), uint64(bucket), 36)
}

// tags are the hash tags of the partitions: for each one the shortest first
// text with its slot.
func (l layout) tags() []string {
	tags := make([]string, l.partitions)
	partitions := make(map[int]int, l.partitions)
	for p := range l.partitions {
		partitions[l.slot(p)] = p
	}
	for n := int64(0); len(partitions) > 0; n++ {
		tag := strconv.FormatInt(n, 36)
		slot := int(crc16(tag)) % slots
		if p, wanted := partitions[slot]; wanted {
			tags[p] = tag
			delete(partitions, slot)
		}
	}
	return tags
}

// prefixes are the keys' beginnings by partition: "fc:{tag}:".
func (l layout) prefixes(namespace string) []string {
	prefixes := l.tags()
	for p, tag := range prefixes {
		prefixes[p] = namespace + ":{" + tag + "}:"
	}
	return prefixes
}

// record is the partition of the format record: one beyond those of the logs,
// so that every layout finds it under the same key.
func (l layout) record() int { return l.partitions }

const recordTag = "format"

// slot is the cluster slot of a partition: the middle of one of as many equal
// shares of all slots, so that any even distribution of slots is one of
// partitions. A partition's share is its number with the bits reversed, so that
// neighbouring buckets are on different masters.
func (l layout) slot(partition int) int {
	if partition == l.record() {
		return int(crc16(recordTag)) % slots
	}
	share := slots / l.partitions
	reversed := int(bits.Reverse16(uint16(partition))) >> (16 - bits.Len16(uint16(l.partitions-1)))
	return reversed*share + share/2
}

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
