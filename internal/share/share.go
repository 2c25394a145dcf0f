// Package share picks a deterministic share of all users by a keyed hash: the same
// on every instance, after every restart, and in whatever else computes it.
//
// A user is in a share of p percent exactly when
//
//	xxHash64(kind ":" salt ":" id) < p/100 × 2^64
//
// where kind is "holdout" or "sample", id is the user's four bytes, little endian, the
// seed is 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), and the
// right side is computed in 64-bit floating point and rounded down to a whole number.
// 100 percent is everybody.
//
// So a share of 10 % with a salt is part of that of 20 % with the same salt, shares with
// different salts are independent, and so are those of different kinds: a sample does not
// meet the holdout because both were salted "2027". A share is of all users: of n users
// it holds p percent give or take √n, never exactly so many.
package share

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Kind is what a share is for.
type Kind string

// The kinds.
const (
	Holdout Kind = "holdout"
	Sample  Kind = "sample"
)

// MaxSalt is the most bytes of a salt.
const MaxSalt = 128

// Share is a share of all users. The zero value holds nobody.
type Share struct {
	percent float64
	salt    string
	below   uint64 // a hash below it is in; all: the bound is 2^64
	all     bool
	prefix  string
}

// New is the share of a percentage, above 0 and at most 100. The error says which
// argument breaks which rule.
func New(kind Kind, percent float64, salt string) (Share, error) {
	switch {
	case !(percent > 0 && percent <= 100): // NaN, too
		return Share{}, fmt.Errorf("percent: must be above 0 and at most 100, got %v", percent)
	case salt == "" || len(salt) > MaxSalt:
		return Share{}, fmt.Errorf("salt: must be 1 to %d bytes, got %d", MaxSalt, len(salt))
	}
	s := Share{percent: percent, salt: salt, prefix: string(kind) + ":" + salt + ":"}
	if part := percent / 100; part < 1 {
		s.below = uint64(math.Ldexp(part, 64))
	} else {
		s.all = true
	}
	return s, nil
}

// Percent is the share in percent.
func (s *Share) Percent() float64 { return s.percent }

// Salt is what tells it from other shares of the percentage.
func (s *Share) Salt() string { return s.salt }

// Has reports whether the user is in the share. It does not allocate.
func (s *Share) Has(user uint32) bool {
	var marks [1]uint8
	s.Mark([]uint32{user}, marks[:], 1)
	return marks[0] != 0
}

// Mark sets marks[i] to mark where users[i] is in the share and marks[i] is 0. It does not
// allocate, and costs less than asking Has of each.
func (s *Share) Mark(users []uint32, marks []uint8, mark uint8) {
	var buffer [MaxSalt + 16]byte
	n := copy(buffer[:], s.prefix)
	key := buffer[:n+4]
	for i, user := range users {
		if marks[i] != 0 {
			continue
		}
		binary.LittleEndian.PutUint32(key[n:], user)
		if s.all || xxhash.Sum64(key) < s.below {
			marks[i] = mark
		}
	}
}
