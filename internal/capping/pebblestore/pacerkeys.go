package pebblestore

import (
	"encoding/binary"
	"fmt"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// firstSize is the number of bytes that a run's number takes in the key of a run of permits. A run is numbered by its
// first permit: by the position of this permit in the whole log.
const firstSize = 6

// pacerKey returns the prefix of the keys of all logs that a pacer has in one life (the time until it is forgotten).
// Each time a pacer is forgotten, a new life of the pacer begins.
func pacerKey(life uint32, pacer string) ([]byte, error) {
	return appendText(binary.BigEndian.AppendUint32([]byte{database.KeyPacer}, life), pacer)
}

// lifeSize is the number of bytes that the number of a pacer's life takes in a key.
const lifeSize = 4

// logKey returns the key of the head (the first stored value) of a pacer's log. The key of the head (first value) of a
// pacer's log is also the prefix of the keys of the log's runs of permits. The key of one log never begins with the key
// of another log's head.
func logKey(life uint32, pacer, message string) ([]byte, error) {
	key, err := pacerKey(life, pacer)
	if err != nil {
		return nil, err
	}
	return appendText(key, message)
}

// appendText appends a text to a database key, after a byte with the text's length.
func appendText(key []byte, text string) ([]byte, error) {
	if len(text) > 255 {
		return nil, fmt.Errorf("a pacer name, message id or key must have at most 255 bytes, got %d", len(text))
	}
	return append(append(key, byte(len(text))), text...), nil
}

// runKey returns the key of the run of permits whose first permit has the given number.
func runKey(log string, first int64) []byte {
	number := binary.BigEndian.AppendUint64(nil, uint64(first))
	return append([]byte(log), number[8-firstSize:]...)
}

func requestKey(r pacing.Request) []byte { return append([]byte{database.KeyRequest}, r[:]...) }

// pacerLogOf returns the key of the head (first value) of the log to which a key belongs. If the key does not belong to
// a pacer's log, pacerLogOf returns nil.
func pacerLogOf(key []byte) []byte {
	at := 1 + lifeSize
	for range 2 {
		if at >= len(key) {
			return nil
		}
		at += 1 + int(key[at])
	}
	if at > len(key) {
		return nil
	}
	return key[:at]
}
