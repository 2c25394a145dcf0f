package pebblestore

import (
	"encoding/binary"
	"fmt"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// firstSize is the length in bytes of the number of a run of permits in the key of the run. The number of a run is the
// number of the first permit of the run.
const firstSize = 6

// pacerKey returns the prefix of the keys of a pacer's logs in one life. A pacer begins a new life each time it is
// forgotten.
func pacerKey(life uint32, pacer string) ([]byte, error) {
	return appendText(binary.BigEndian.AppendUint32([]byte{database.KeyPacer}, life), pacer)
}

// lifeSize is the length in bytes of the number of a pacer's life in a key.
const lifeSize = 4

// logKey returns the key of the head (the first stored value) of a pacer's log. The key of a log's head is also the
// prefix of the keys of the log's runs of permits. No key of another log begins with the key of a log's head.
func logKey(life uint32, pacer, message string) ([]byte, error) {
	key, err := pacerKey(life, pacer)
	if err != nil {
		return nil, err
	}
	return appendText(key, message)
}

// appendText appends the length of the text (1 byte) and the text to the key.
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

// pacerLogOf returns the key of the head of the pacer's log to which a key belongs, or nil for any other key.
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
