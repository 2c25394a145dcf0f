package trace

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"time"
)

// IDHeader is the HTTP header that contains the request id, in requests and in responses.
const IDHeader = "X-Request-Id"

// maxID is the maximum number of bytes in a request id that a caller chose.
const maxID = 128

// IDOf returns the request id that the caller chose, if this id is safe for logs and headers. A request id is safe if
// it has 1 to 128 visible ASCII characters. If the caller's id is not safe, IDOf returns a new id. The argument "at" is
// the current time.
func IDOf(h http.Header, at time.Time) string {
	if given := h[IDHeader]; len(given) == 1 && validID(given[0]) {
		return given[0]
	}
	return NewID(at)
}

// NewID returns a unique request id of 24 hexadecimal digits, for a request that arrived at the given time. The
// alphabetical order of such ids is the order of the milliseconds at which the requests arrived.
func NewID(at time.Time) string {
	var raw [12]byte
	random := rand.Uint64()
	binary.BigEndian.PutUint64(raw[:], uint64(at.UnixMilli())<<16)
	binary.BigEndian.PutUint16(raw[6:], uint16(random>>32))
	binary.BigEndian.PutUint32(raw[8:], uint32(random))
	var text [24]byte
	hex.Encode(text[:], raw[:])
	return string(text[:])
}

func validID(id string) bool {
	if len(id) == 0 || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}
