package segments

import (
	"runtime"

	"capper/internal/capping"
	"capper/internal/dictionary"
)

// AppendUsers appends the users with the given numbers, which must come from bitmaps of the snapshot. AppendUsers is
// the inverse of Numbers.
func (s *Snapshot) AppendUsers(dst []capping.UserID, numbers []uint32) []capping.UserID {
	if s.dictionary == nil {
		return capping.AppendUsers(dst, numbers)
	}
	dst = dictionary.AppendImages(dst, s.dictionary.Dictionary, numbers)
	runtime.KeepAlive(s) // keeps the dictionary's file mapped
	return dst
}

// NumberAfter returns the lowest number of all users above the given user. If there is no such user, NumberAfter
// returns a number above the numbers of all members. The given user need not be in the snapshot.
func (s *Snapshot) NumberAfter(user capping.UserID) uint64 {
	if s.dictionary == nil {
		return uint64(user) + 1
	}
	after := s.dictionary.After(uint64(user))
	runtime.KeepAlive(s) // keeps the dictionary's file mapped
	return uint64(after)
}
