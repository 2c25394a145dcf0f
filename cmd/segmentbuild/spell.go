package main

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// The map spellings contains, for each kind of user ids, the function that appends the id of a synthetic user.
var spellings = map[string]func(dst []byte, user uint32) []byte{
	"dense": spellDense, "uint64": spellUint64, "uuid": spellUUID, "text": spellText,
}

func spellDense(dst []byte, user uint32) []byte { return strconv.AppendUint(dst, uint64(user), 10) }

// spellUint64 appends a 64-bit id for a synthetic user. The upper bits of the id increase with the user number, as in
// ids that contain a time.
func spellUint64(dst []byte, user uint32) []byte {
	return strconv.AppendUint(dst, 1<<62|uint64(user)<<22|scatter(uint64(user))>>42, 10)
}

// spellUUID appends a version 4 UUID for a synthetic user.
func spellUUID(dst []byte, user uint32) []byte {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], scatter(uint64(user)))
	binary.BigEndian.PutUint64(id[8:], scatter(uint64(user)|1<<32))
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	for i, end := range []int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, id[[]int{0, 4, 6, 8, 10}[i]:end])
	}
	return dst
}

// spellText appends a text id for a synthetic user, such as user-17@example.com.
func spellText(dst []byte, user uint32) []byte {
	return append(strconv.AppendUint(append(dst, "user-"...), uint64(user), 10), "@example.com"...)
}

// The function "scatter" is a bijection of 64-bit numbers with results that look random: the finalizer of SplitMix64
// (Steele, Lea and Flood, 2014).
func scatter(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
