package segments

import (
	"runtime"

	"capper/internal/capping"
	"capper/internal/dictionary"
)

// AppendUsers converts user numbers from bitmaps of the snapshot to users (images of ids), and appends the users to
// dst. AppendUsers is the inverse of Snapshot.Numbers.
func (s *Snapshot) AppendUsers(dst []capping.UserID, numbers []uint32) []capping.UserID {
	if s.dictionary == nil {
		return capping.AppendUsers(dst, numbers)
	}
	dst = dictionary.AppendImages(dst, s.dictionary.Dictionary, numbers)
	runtime.KeepAlive(s) // keeps the dictionary's file mapped
	return dst
}

// NumberAfter returns the lowest possible number of users after the given user in the bitmaps of the snapshot. If the
// snapshot has no user after the given user, the result is above all numbers in the bitmaps. NumberAfter also accepts a
// user who is not in the snapshot.
func (s *Snapshot) NumberAfter(user capping.UserID) uint64 {
	if s.dictionary == nil {
		return uint64(user) + 1
	}
	after := s.dictionary.After(uint64(user))
	runtime.KeepAlive(s) // keeps the dictionary's file mapped
	return uint64(after)
}
