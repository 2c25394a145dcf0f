package pebblestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"capper/internal/capping"
)

// The first byte of a key says what it is. Pebble orders keys bytewise, so
// logs lie in the order of user ids.
const (
	keyMeta    = 0 // + name
	keyLog     = 1 // + user id (4, big endian)
	keyMessage = 2 // + token (6): a message without a namespace
	keyNamed   = 3 // + token (6): one with a namespace
	keyEnd     = 4 // of what the sweep looks at
	keyMended  = 4 // + user id (4): the log was written since its block was damaged
)

const logKeySize = 5

// bucketSize is the number of users whose logs share a key. It is part of the
// format record; see doc.go for why it is 1.
const bucketSize = 1

func putLogKey(key []byte, user capping.UserID) {
	key[0] = keyLog
	binary.BigEndian.PutUint32(key[1:], user)
}

func logKey(user capping.UserID) []byte {
	key := make([]byte, logKeySize)
	putLogKey(key, user)
	return key
}

func messageKey(kind byte, token capping.Token) []byte { return append([]byte{kind}, token[:]...) }

// keyKind is where the message is remembered. Those with a namespace lie apart,
// where a program that knows of none does not look.
func keyKind(m capping.Message) byte {
	if m.Namespace == "" {
		return keyMessage
	}
	return keyNamed
}

var (
	formatKey     = []byte("\x00format")
	retentionKey  = []byte("\x00retention")  // of the policy in force, as earlier versions read it
	retentionsKey = []byte("\x00retentions") // of those that were in force, too
)

// format is the record that says how everything else is written. A store
// whose record is another one cannot be read by this program.
func format() string {
	return fmt.Sprintf("capper embedded store, format 1, bucket size %d, entries of %d bytes, epoch %d",
		bucketSize, capping.EntrySize, int64(capping.EpochUnixMillis))
}

// checkFormat writes the format record into an empty database and demands it
// of any other.
func checkFormat(db *pebble.DB) error {
	found, err := lookup(db, formatKey)
	if err != nil {
		return err
	}
	if found == nil {
		empty, err := isEmpty(db)
		if err != nil {
			return err
		}
		if !empty {
			return errors.New("a database without capper's format record: not a capper store")
		}
		return db.Set(formatKey, []byte(format()), pebble.Sync)
	}
	if string(found) != format() {
		return fmt.Errorf("its format record is %q, this version reads only %q", found, format())
	}
	return nil
}

func isEmpty(db *pebble.DB) (bool, error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return false, err
	}
	empty := !it.First()
	return empty, errors.Join(it.Error(), it.Close())
}

// lookup is a copy of the key's value, nil when the key is absent.
func lookup(db *pebble.DB, key []byte) ([]byte, error) {
	value, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if pebble.IsCorruptionError(err) {
		return lookupUnfiltered(db, key, err)
	}
	if err != nil {
		return nil, err
	}
	return append(make([]byte, 0, len(value)), value...), closer.Close()
}

// lookupUnfiltered is lookup without the tables' filters, one of which may be
// all that was found damaged.
func lookupUnfiltered(db *pebble.DB, key []byte, damage error) (value []byte, err error) {
	it, err := db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	if it.SeekGE(key) && bytes.Equal(it.Key(), key) {
		value = slices.Clone(it.Value())
	}
	if it.Error() != nil {
		return nil, damage
	}
	return value, nil
}

// maxLogSize is that of a log with LogBound entries in every channel, and in none.
const maxLogSize = 256 * capping.LogBound * capping.EntrySize

// decodeLog is the log that a value holds. The value of a user without sends
// is never written, so an empty one is damage. The log shares the value's bytes.
func decodeLog(value []byte) (capping.Log, error) {
	log := capping.Log(value)
	if len(value) == 0 || len(value) > maxLogSize {
		return nil, fmt.Errorf("log of %d bytes: must be %d to %d", len(value), capping.EntrySize, maxLogSize)
	}
	if err := log.Check(); err != nil {
		return nil, err
	}
	if last := log.At(log.Len() - 1); last >= capping.Never {
		return nil, fmt.Errorf("log entry stamped %d: must be below %d", last, capping.Never)
	}
	return log, nil
}

// A message value is the instant from which it is forgotten (8, big endian)
// and the message's text: an id of up to 128 bytes, a namespace of up to 64 and
// the two marks around it.
const maxMessageText = 128 + 64 + 2

func encodeMessage(expires capping.Instant, m capping.Message) []byte {
	text := m.Text()
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(text)), uint64(expires)), text...)
}

func decodeMessage(value []byte) (expires capping.Instant, m capping.Message, err error) {
	if len(value) <= 8 || len(value) > 8+maxMessageText {
		return 0, m, fmt.Errorf("message record of %d bytes: must be 9 to %d", len(value), 8+maxMessageText)
	}
	at := binary.BigEndian.Uint64(value)
	if at > uint64(2*capping.Never) {
		return 0, m, fmt.Errorf("message record that expires at %d: must be at most %d", at, 2*capping.Never)
	}
	return capping.Instant(at), capping.MessageOf(string(value[8:])), nil
}
