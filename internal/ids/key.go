package ids

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// KeySize is the length of a key in bytes.
const KeySize = 16

// Key makes images differ between deployments. A deployment that loses its key finds no log again.
type Key [KeySize]byte

// NewKey returns a random key from crypto/rand.
func NewKey() (key Key) {
	_, _ = rand.Read(key[:]) // never returns an error: it ends the program where the system has no random bytes
	return key
}

// String returns the key as 32 hexadecimal digits in lower case.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// ParseKey returns the key of 32 hexadecimal digits in lower case. ParseKey rejects the key of 32 zeros, which no
// NewKey returns. The error follows the name of a field.
func ParseKey(text string) (key Key, err error) {
	for i := range len(text) {
		if digit := hexDigits[text[i]]; digit > 0xf || text[i] >= 'A' && text[i] <= 'F' {
			return Key{}, fmt.Errorf("must be hexadecimal digits in lower case, got %s", shown(text))
		}
	}
	if len(text) != hex.EncodedLen(KeySize) {
		return Key{}, fmt.Errorf("must be %d hexadecimal digits, got %d", hex.EncodedLen(KeySize), len(text))
	}
	if _, err := hex.Decode(key[:], []byte(text)); err != nil {
		return Key{}, err
	}
	if key == (Key{}) {
		return Key{}, errors.New("must not be 32 zeros")
	}
	return key, nil
}
