package rows

import "bytes"

// MaxID is the highest user id.
const MaxID = 1<<32 - 1

// ParseID reads a decimal user id. Spaces around it are allowed, nothing else is.
func ParseID(field []byte) (uint32, bool) {
	if n := len(field); n > 0 && (field[0] <= ' ' || field[n-1] <= ' ') {
		field = bytes.Trim(field, " \t\r")
	}
	if len(field) == 0 {
		return 0, false
	}
	var v uint64
	for _, c := range field {
		if c -= '0'; c > 9 {
			return 0, false
		}
		if v = v*10 + uint64(c); v > MaxID {
			return 0, false
		}
	}
	return uint32(v), true
}

// WhyNotID is the reason why ParseID refused field.
func WhyNotID(field []byte) string {
	if len(bytes.TrimSpace(field)) == 0 {
		return ReasonEmpty
	}
	return reasonNotID
}
