package answer

import (
	"encoding/base64"

	"capper/internal/bitmap"
	"capper/internal/capping"
)

// appendBase64Bitmap appends the users, which must ascend, as a JSON string.
// scratch is a buffer to use; it is returned for the next call.
func appendBase64Bitmap(dst, scratch []byte, users []capping.UserID) (extended, scratchOut []byte) {
	scratch = bitmap.AppendSorted(scratch[:0], users)
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, scratch)
	return append(dst, '"'), scratch
}
