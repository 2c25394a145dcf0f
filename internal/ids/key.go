package ids

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// KeySize is the length of the hash key of ids, in bytes.
const KeySize = 16

// A Key is the random hash key of a scheme (kind and hash key of ids). With different keys, the same id has different
// images (64-bit numbers that stand for ids). A deployment that loses its hash key cannot find the recorded sends of
// any user.
type Key [KeySize]byte

// NewKey returns a random hash key for ids, from crypto/rand.
func NewKey() (key Key) {
	_, _ = rand.Read(key[:]) // never returns an error: rand.Read ends the program if the system has no random bytes
	return key
}

// String returns the hash key as 32 hexadecimal digits in lower case.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// ParseKey parses a hash key of 32 hexadecimal digits in lower case. ParseKey rejects 32 zeros, because zeros are not a
// random key. The error text of ParseKey does not name the field, so the caller must put the field's name in front.
func ParseKey(text string) (key Key, err error) {
	for i := range len(text) {
		if digit := hexDigits[text[i]]; digit > 0xf || text[i] >= 'A' && text[i] <= 'F' {
			return Key{}, fmt.Errorf("must consist of hexadecimal digits in lower case, got %s", shown(text))
		}
	}
	if len(text) != hex.EncodedLen(KeySize) {
		return Key{}, fmt.Errorf("must have %d hexadecimal digits, got %d", hex.EncodedLen(KeySize), len(text))
	}
	if _, err := hex.Decode(key[:], []byte(text)); err != nil {
		return Key{}, err
	}
	if key == (Key{}) {
		return Key{}, errors.New("must not be 32 zeros")
	}
	return key, nil
}
