package redisstore

import (
	"strconv"
)

// layout is how users are laid out over keys. It is part of the stored format.
type layout struct {
	bucketBits uint // a bucket holds 1<<bucketBits neighbouring ids, at most 8 bits
	partitions int  // a power of two
}

var standardLayout = layout{bucketBits: 7, partitions: 256}

const slots = 16384

func (l layout) bucket(user uint32) uint32 { return user >> l.bucketBits }

// field is the name of the user's field in the bucket's hash: one byte.
func (l layout) field(user uint32) byte { return byte(user & (1<<l.bucketBits - 1)) }

func (l layout) partition(user uint32) int {
	return int(l.bucket(user) & uint32(l.partitions-1))
}

// tags are the hash tags of the partitions: for partition p the shortest
// first text whose slot is the middle of the p-th equal share of all slots,
// so that any even distribution of slots is one of partitions.
func (l layout) tags() []string {
	tags := make([]string, l.partitions)
	share := slots / l.partitions
	for n, left := 0, l.partitions; left > 0; n++ {
		tag := strconv.FormatInt(int64(n), 36)
		slot := int(crc16(tag)) % slots
		if p := slot / share; slot%share == share/2 && tags[p] == "" {
			tags[p] = tag
			left--
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

// slot is the cluster slot of a partition.
func (l layout) slot(partition int) int {
	share := slots / l.partitions
	return partition*share + share/2
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
