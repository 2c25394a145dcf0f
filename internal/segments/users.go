package segments

import (
	"runtime"

	"capper/internal/capping"
	"capper/internal/dictionary"
)

// AppendUsers appends the users with the given numbers, which must be those of members of the snapshot's bitmaps. It is
// the inverse of Numbers.
func (s *Snapshot) AppendUsers(dst []capping.UserID, numbers []uint32) []capping.UserID {
	if s.dictionary == nil {
		return capping.AppendUsers(dst, numbers)
	}
	dst = dictionary.AppendImages(dst, s.dictionary.Dictionary, numbers)
	runtime.KeepAlive(s) // keeps the dictionary's file mapped
	return dst
}
