package format

import "bytes"

// maxID is the highest dense user id (32-bit integer).
const maxID = 1<<32 - 1

// parseID parses a dense user id (32-bit integer) in decimal form, with or without spaces around the id.
func parseID(field []byte) (uint32, bool) {
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
		if v = v*10 + uint64(c); v > maxID {
			return 0, false
		}
	}
	return uint32(v), true
}

// whyNotID returns the reason for which parseID has rejected a field, for an error text.
func whyNotID(field []byte) string {
	if len(bytes.TrimSpace(field)) == 0 {
		return reasonEmpty
	}
	return reasonNotID
}
