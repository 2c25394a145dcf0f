// Package share picks a deterministic share of all users with a keyed hash. Every instance, restart and
// other implementation of this formula picks the same users.
//
// A user is in a share of p percent exactly when
//
//	xxHash64(kind ":" salt ":" id) < p/100 × 2^64
//
// where kind is "holdout" or "sample", id is the user's four bytes, little endian, or eight bytes for a user above
// 4,294,967,295, and the seed is 0
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). The right side is computed in 64-bit
// floating point and rounded down to a whole number. A share of 100 percent contains every user.
//
// A cell contains the users between two percentages of one salt: the users in the share of the upper
// percentage and outside the share of the lower one. A share of p percent is the cell from 0 to p. Adjacent
// cells share no user and leave none out, because both sides of a boundary compare with the same number.
// Cells that cover 0 to 100 contain every user.
//
// A share of 10 % is part of the share of 20 % with the same salt. Shares with different salts are
// independent, and so are shares of different kinds: a sample is independent of a holdout even with the same
// salt "2027". A share of p percent of n users holds p percent of them, give or take √n.
package share

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Kind is the purpose of a share: a holdout or a sample.
type Kind string

// The kinds of shares.
const (
	Holdout Kind = "holdout"
	Sample  Kind = "sample"
)

// MaxSalt is the largest length of a salt in bytes.
const MaxSalt = 128

// Share is a share of all users, or a cell between two percentages of a salt. The zero value contains no
// user.
type Share struct {
	from, to float64 // percent
	salt     string
	least    uint64 // hashes below least are outside
	below    uint64 // hashes at or above below are outside; with all true the bound is 2^64
	all      bool
	prefix   string
}

// New returns the share of a percentage, above 0 and at most 100. The error names the invalid argument and
// its rule.
func New(kind Kind, percent float64, salt string) (Share, error) {
	switch {
	case !(percent > 0 && percent <= 100): // NaN is invalid too
		return Share{}, fmt.Errorf("percent: must be above 0 and at most 100, got %v", percent)
	case salt == "" || len(salt) > MaxSalt:
		return Share{}, fmt.Errorf("salt: must be 1 to %d bytes, got %d", MaxSalt, len(salt))
	}
	s := Share{to: percent, salt: salt, prefix: string(kind) + ":" + salt + ":"}
	s.below, s.all = bound(percent)
	return s, nil
}

// NewCell returns the cell between two percentages from 0 to 100: the users in the share of to percent but
// not in the share of from percent. The error names the invalid argument and its rule.
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

// bound returns the first hash above a percentage. all reports that this hash is 2^64.
func bound(percent float64) (below uint64, all bool) {
	if part := percent / 100; part < 1 {
		return uint64(math.Ldexp(part, 64)), false
	}
	return 0, true
}

// Percent returns the size of the share in percent.
func (s *Share) Percent() float64 { return s.to - s.from }

// From returns the lower boundary of the cell in percent. From is 0 for a share.
func (s *Share) From() float64 { return s.from }

// To returns the upper boundary of the cell in percent.
func (s *Share) To() float64 { return s.to }

// Salt returns the salt of the share. Shares with different salts are independent.
func (s *Share) Salt() string { return s.salt }

// Has reports whether the user is in the share. Has does not allocate.
func Has[User ~uint32 | ~uint64](s *Share, user User) bool {
	var marks [1]uint8
	Mark(s, []User{user}, marks[:], 1)
	return marks[0] != 0
}

// Mark sets marks[i] to mark when users[i] is in the share and marks[i] is 0. Mark does not allocate and is
// faster than a call to Has for each user.
func Mark[User ~uint32 | ~uint64](s *Share, users []User, marks []uint8, mark uint8) {
	var buffer [MaxSalt + 24]byte
	n := copy(buffer[:], s.prefix)
	for i, user := range users {
		if marks[i] != 0 {
			continue
		}
		binary.LittleEndian.PutUint64(buffer[n:], uint64(user))
		key := buffer[:n+4]
		if uint64(user) > math.MaxUint32 {
			key = buffer[:n+8]
		}
		if hash := xxhash.Sum64(key); hash >= s.least && (s.all || hash < s.below) {
			marks[i] = mark
		}
	}
}
