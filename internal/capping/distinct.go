package capping

import "math/bits"

// Distinct moves the first occurrence of each user to the front of users, in
// order, and returns that part and how many repeats were left out. It is
// linear: an open-addressing set of twice the size, no bytes per user beyond.
func Distinct(users []UserID) (distinct []UserID, duplicates int) {
	size := 1 << max(4, bits.Len(uint(len(users)))+1)
	mask, shift := uint32(size-1), 33-bits.Len(uint(size))
	slots := make([]UserID, size)
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
		slot := user * 2654435769 >> shift
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
