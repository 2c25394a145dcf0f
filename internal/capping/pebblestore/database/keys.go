package database

import (
	"encoding/binary"
	"slices"

	"capper/internal/capping"
)

// The first byte of a key says what it is. Pebble orders keys bytewise, so
// logs lie in the order of user ids.
const (
	KeyMeta    = 0 // + name; + 0xFF …, see package campaigns
	KeyLog     = 1 // + user id (4, big endian)
	KeyMessage = 2 // + token (6): a message without a namespace
	KeyNamed   = 3 // + token (6): one with a namespace
	KeyEnd     = 4 // of what the sweep looks at
	keyMended  = 4 // + user id (4): the log was written since its block was damaged
	KeyRequest = 5 // + request (16), see package pacerlogs
	KeyPacer   = 6 // + log of a pacer, see there. Nothing lies behind
	PacerEnd   = 7
)

// LogKeySize is the length of a log's key.
const LogKeySize = 5

func putLogKey(key []byte, user capping.UserID) {
	key[0] = KeyLog
	binary.BigEndian.PutUint32(key[1:], user)
}

// LogKey is where the user's log is.
func LogKey(user capping.UserID) []byte {
	key := make([]byte, LogKeySize)
	putLogKey(key, user)
	return key
}

// MarkerKey is where the format marker is.
var MarkerKey = []byte("\x00format")

// After is the first key behind all that begin with the prefix, which has a byte below 0xFF.
func After(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}
