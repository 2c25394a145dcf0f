package database

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"capper/internal/capping"
)

// These constants are the possible first bytes of database keys: the kind of the key's value. Pebble sorts keys by
// their bytes, so the logs in the database are in the order of user ids.
const (
	KeyMeta    = 0 // + name; + 0xFF …, see messagekeys.go of the store
	KeyLog     = 1 // + user (4 or 8, big endian)
	KeyMessage = 2 // + token (6): a message without a namespace
	KeyNamed   = 3 // + token (6): a message with a namespace
	KeyEnd     = 4 // the end of the keys that the sweep checks
	keyMended  = 4 // + user (4 or 8): the log was written after its block was damaged
	KeyRequest = 5 // + request (16), see request.go of the store
	KeyPacer   = 6 // + log of a pacer, see pacerkeys.go of the store; no keys may follow these
	PacerEnd   = 7
)

// In a key, a user takes 4 bytes if the database has dense ids, and 8 bytes if it has id images (64-bit numbers that
// stand for ids). All functions that depend on the size of a user in a key are in keys.go.
const (
	denseWidth = 4
	imageWidth = 8
)

// mostLogKey is the largest length in bytes of the key of a user's log.
const mostLogKey = 1 + imageWidth

// The method "width" returns the number of bytes that a user's id takes in a key of this database.
func (d *DB) width() int {
	if d.wide {
		return imageWidth
	}
	return denseWidth
}

// logKeySize returns the length in bytes of the key of a user's log.
func (d *DB) logKeySize() int { return 1 + d.width() }

// userKey appends the database key of a user's value to dst. The argument "kind" of userKey is the first byte of the
// key.
func (d *DB) userKey(dst []byte, kind byte, user capping.UserID) []byte {
	dst = append(dst, kind)
	if d.wide {
		return binary.BigEndian.AppendUint64(dst, uint64(user))
	}
	return binary.BigEndian.AppendUint32(dst, capping.Dense(user))
}

// LogKey returns the key of the user's log.
func (d *DB) LogKey(user capping.UserID) []byte {
	return d.userKey(make([]byte, 0, mostLogKey), KeyLog, user)
}

// UserOf returns the user of the log with the given key. If the key does not have the length of the key of a log, the
// result "ok" is false.
func (d *DB) UserOf(key []byte) (user capping.UserID, ok bool) {
	return d.firstUser(key), len(key) == d.logKeySize()
}

// firstUser returns the first user whose log has a key at or after the given key. The given key may be shorter than the
// key of a log.
func (d *DB) firstUser(key []byte) capping.UserID {
	var bytes [imageWidth]byte
	copy(bytes[:], key[1:])
	user := binary.BigEndian.Uint64(bytes[:])
	if !d.wide {
		user >>= 8 * (imageWidth - denseWidth)
	}
	return capping.UserID(user)
}

// lastUser returns the largest user id that a key of this database can hold.
func (d *DB) lastUser() capping.UserID {
	if d.wide {
		return math.MaxUint64
	}
	return capping.MaxDense
}

// CheckUsers returns an error if one of the user ids is too large for a database key, because two users could otherwise
// have the same key.
func (d *DB) CheckUsers(users ...capping.UserID) error {
	most := d.lastUser()
	for _, user := range users {
		if user > most {
			return fmt.Errorf("user id must be at most %d in a store for dense ids (32-bit integers), got %d",
				most, user)
		}
	}
	return nil
}

// MarkerKey is the key of the format marker (value that names the version of the stored format).
var MarkerKey = []byte("\x00format")

// The function After returns the first key that sorts after all keys with the prefix. The prefix must contain a byte
// below 0xFF.
func After(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; ; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
}
