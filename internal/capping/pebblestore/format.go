package pebblestore

import (
	"encoding/binary"
	"fmt"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
)

func messageKey(kind byte, token capping.Token) []byte { return append([]byte{kind}, token[:]...) }

// keyKind is where the message is remembered. Those with a namespace lie apart,
// where a program that knows of none does not look.
func keyKind(m capping.Message) byte {
	if m.Namespace == "" {
		return database.KeyMessage
	}
	return database.KeyNamed
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
