package pebblestore

import (
	"encoding/binary"
	"fmt"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// firstSize is the size in bytes of the number that identifies a run of permits in the run's key. The number of a run
// is the position of its first permit in the whole log.
const firstSize = 6

// pacerKey returns the prefix of the keys of all logs in one life (time between two resets) of a pacer.
func pacerKey(life uint32, pacer string) ([]byte, error) {
	return appendText(binary.BigEndian.AppendUint32([]byte{database.KeyPacer}, life), pacer)
}

// lifeSize is the number of bytes of a life's number in a key; a life is the time between two resets of a pacer.
const lifeSize = 4

// logKey returns the key of the head (first stored value) of a pacer's log. The key of a head (first stored value of a
// log) is also the prefix of the keys of the log's runs of permits. It is never a prefix of the keys of another log.
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

// pacerLogOf returns the key of the head (first stored value) of the pacer's log that contains the given key. If no
// pacer's log contains the key, pacerLogOf returns nil.
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
