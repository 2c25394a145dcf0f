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
// A cell of a salt's scale is the users between two percentages: those in the share of the upper
// one who are not in that of the lower one. A share of p percent is the cell from 0 to p. Cells
// that meet have no user in both and leave nobody out between them, as both sides of a
// boundary compare with the same number; cells that cover 0 to 100 are everybody.
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

// Share is a share of all users, or a cell of the salt's scale. The zero value holds nobody.
type Share struct {
	from, to float64 // percent
	salt     string
	least    uint64 // a hash below it is out
	below    uint64 // a hash from it on is out; all: the bound is 2^64
	all      bool
	prefix   string
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
	s := Share{to: percent, salt: salt, prefix: string(kind) + ":" + salt + ":"}
	s.below, s.all = bound(percent)
	return s, nil
}

// NewCell is the cell between two percentages, from 0 to 100: those who are in the share of
// to percent and not in that of from percent. The error says which argument breaks which rule.
func NewCell(kind Kind, from, to float64, salt string) (Share, error) {
	if !(from >= 0 && from < 100) {
		return Share{}, fmt.Errorf("from: must be 0 or more and below 100, got %v", from)
	}
	s, err := New(kind, to, salt)
	switch {
	case err != nil && !(to > 0 && to <= 100):
		return Share{}, fmt.Errorf("to: must be above 0 and at most 100, got %v", to)
	case err != nil:
		return Share{}, err
	case from >= to:
		return Share{}, fmt.Errorf("to: must be above from, which is %v, got %v", from, to)
	}
	s.from = from
	s.least, _ = bound(from)
	return s, nil
}

// bound is the hash at which a percentage of the scale ends; all: that is 2^64.
func bound(percent float64) (below uint64, all bool) {
	if part := percent / 100; part < 1 {
		return uint64(math.Ldexp(part, 64)), false
	}
	return 0, true
}

// Percent is how large the share is, in percent.
func (s *Share) Percent() float64 { return s.to - s.from }

// From and To are the boundaries of the cell in percent; of a share From is 0.
func (s *Share) From() float64 { return s.from }

// To is the upper boundary.
func (s *Share) To() float64 { return s.to }

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
		if hash := xxhash.Sum64(key); hash >= s.least && (s.all || hash < s.below) {
			marks[i] = mark
		}
	}
}
