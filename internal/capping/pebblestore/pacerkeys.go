package pebblestore

import (
	"encoding/binary"
	"fmt"

	"capper/internal/capping/pebblestore/database"
	"capper/internal/pacing"
)

// firstSize is the length of a run's number in its key in bytes. The number is that of the run's first
// permit.
const firstSize = 6

// pacerKey returns the prefix of all keys of a pacer's logs in one life.
func pacerKey(life uint32, pacer string) ([]byte, error) {
	return appendText(binary.BigEndian.AppendUint32([]byte{database.KeyPacer}, life), pacer)
}

// lifeSize is the length of a life in a key in bytes.
const lifeSize = 4

// logKey returns the key of a log's head, which is also the prefix of its runs' keys. No key of another log
// begins with it.
func logKey(life uint32, pacer, message string) ([]byte, error) {
	key, err := pacerKey(life, pacer)
	if err != nil {
		return nil, err
	}
	return appendText(key, message)
}

// appendText appends the text's length (1) and the text to the key.
func appendText(key []byte, text string) ([]byte, error) {
	if len(text) > 255 {
		return nil, fmt.Errorf("a pacer name, message id or key must have at most 255 bytes, got %d", len(text))
	}
	return append(append(key, byte(len(text))), text...), nil
}

// runKey returns the key of the run whose first permit has the given number.
func runKey(log string, first int64) []byte {
	number := binary.BigEndian.AppendUint64(nil, uint64(first))
	return append([]byte(log), number[8-firstSize:]...)
}

func requestKey(r pacing.Request) []byte { return append([]byte{database.KeyRequest}, r[:]...) }

// pacerLogOf returns the key of the log to which a key belongs, or nil for another key.
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
