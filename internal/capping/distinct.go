package capping

import (
	"math/bits"
	"math/rand/v2"
)

// Distinct moves the first occurrence of each user to the front of users, in
// order, and returns that part and how many repeats were left out. It is
// linear: an open-addressing set of twice the size, no bytes per user beyond.
// The hash mixes all bits and differs from call to call, so that neither dense
// ids nor chosen ones meet in one slot.
func Distinct(users []UserID) (distinct []UserID, duplicates int) {
	size := 1 << max(4, bits.Len(uint(len(users)))+1)
	mask, shift := uint32(size-1), 33-bits.Len(uint(size))
	slots := make([]UserID, size)
	seed := rand.Uint32()
	hasZero, n := false, 0
	for _, user := range users {
		if user == 0 {
			if !hasZero {
				hasZero = true
				users[n] = user
				n++
			}
			continue
		}
		slot := mix(user^seed) >> shift
		for slots[slot] != 0 && slots[slot] != user {
			slot = (slot + 1) & mask
		}
		if slots[slot] == 0 {
			slots[slot] = user
			users[n] = user
			n++
		}
	}
	return users[:n], len(users) - n
}

// mix spreads every bit of v over the upper ones.
func mix(v uint32) uint32 {
	v = (v ^ v>>16) * 0x7feb352d
	return (v ^ v>>15) * 0x846ca68b
}
