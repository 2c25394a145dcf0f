package pebblestore

import (
	"encoding/binary"
	"math"

	"capper/internal/capping/pebblestore/database"
)

// The prefixes of the keys of changes to sets. These keys sort after those of counts.
var (
	freedKey     = []byte{database.KeyMeta, 0xFF, 4} // the whole key
	freshPrefix  = []byte{database.KeyMeta, 0xFF, 5} // records of calls with few users
	packedPrefix = []byte{database.KeyMeta, 0xFF, 6} // full records: of calls with many users, and packed ones
)

// changeKeySize is the length of a record's key in bytes: the prefix and the record's number (8).
const changeKeySize = 3 + 8

func changeKey(prefix []byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, changeKeySize), prefix...), number)
}

// changeNumber returns the number of the record with the key. ok is false for a key that is not one of a record.
func changeNumber(key []byte) (number uint64, ok bool) {
	if len(key) != changeKeySize {
		return 0, false
	}
	number = binary.BigEndian.Uint64(key[len(freshPrefix):])
	return number, number > 0 && number < math.MaxUint64
}
