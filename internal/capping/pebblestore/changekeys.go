package pebblestore

import (
	"encoding/binary"
	"math"

	"capper/internal/capping/pebblestore/database"
)

// These variables are the prefixes of the database keys for live changes (changes of sets by API calls). Keys of live
// changes sort after the keys for counts of messages.
var (
	freedKey     = []byte{database.KeyMeta, 0xFF, 4} // a whole key, and not a prefix
	freshPrefix  = []byte{database.KeyMeta, 0xFF, 5} // records of calls with few users
	packedPrefix = []byte{database.KeyMeta, 0xFF, 6} // records of calls with many users, and packed records
)

// changeKeySize is the length in bytes of the key of a change record: the prefix and the record's number (8).
const changeKeySize = 3 + 8

func changeKey(prefix []byte, number uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, changeKeySize), prefix...), number)
}

// changeNumber returns the number of a change record from the record's database key. If the key is not the key of a
// change record, the result "ok" is false.
func changeNumber(key []byte) (number uint64, ok bool) {
	if len(key) != changeKeySize {
		return 0, false
	}
	number = binary.BigEndian.Uint64(key[len(freshPrefix):])
	return number, number > 0 && number < math.MaxUint64
}
