package database

import (
	"encoding/binary"
	"slices"

	"capper/internal/capping"
)

// The first byte of a key is the kind of its value. Pebble orders keys bytewise, so logs are in the order of
// user ids.
const (
	KeyMeta    = 0 // + name; + 0xFF …, see messagekeys.go of the store
	KeyLog     = 1 // + user id (4, big endian)
	KeyMessage = 2 // + token (6): a message without a namespace
	KeyNamed   = 3 // + token (6): a message with a namespace
	KeyEnd     = 4 // the end of the keys that the sweep checks
	keyMended  = 4 // + user id (4): the log was written since its block was damaged
	KeyRequest = 5 // + request (16), see request.go of the store
	KeyPacer   = 6 // + log of a pacer, see pacerkeys.go of the store; no keys may follow these
	PacerEnd   = 7
)

// LogKeySize is the length of a log's key in bytes.
const LogKeySize = 5

func putLogKey(key []byte, user capping.UserID) {
	key[0] = KeyLog
	binary.BigEndian.PutUint32(key[1:], user)
}

// LogKey returns the key of the user's log.
func LogKey(user capping.UserID) []byte {
	key := make([]byte, LogKeySize)
	putLogKey(key, user)
	return key
}

// MarkerKey is the key of the format marker.
var MarkerKey = []byte("\x00format")

// After returns the first key behind all keys that begin with the prefix. The prefix must contain a byte
// below 0xFF.
func After(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}
