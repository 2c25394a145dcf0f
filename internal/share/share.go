// Package share selects a share (a certain percentage) of all users by a keyed hash of their ids. Every service
// instance selects the same users, also after a restart. Every other implementation of the formula below also selects
// the same users.
//
// A user is in a share of p percent if and only if
//
//	xxHash64(kind ":" salt ":" id) < p/100 × 2^64
//
// where kind is "holdout" or "sample". In the formula, id is the user id in four bytes, little endian, or in eight
// bytes for an id above 4,294,967,295. The seed of xxHash64 is 0
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). To compare, p/100 × 2^64 is computed in 64-bit
// floating point and rounded down to a whole number. A share of 100 percent contains every user.
//
// A cell is the difference of two shares with the same salt. A cell contains the users who are in the share of the
// upper percentage and not in the share of the lower percentage. A cell from 0 to p percent contains the same users as
// the share of p percent. Two adjacent cells, such as 0 to 10 and 10 to 30, have no user in common and leave no user
// out. At the common boundary, both cells compare the hash of a user with the same number. Adjacent cells that cover
// the range from 0 to 100 together contain every user.
//
// The share of 10 % is a subset of the share of 20 % with the same salt. Shares with different salts are independent.
// Shares of different kinds are independent even with the same salt, for example a sample and a holdout with the salt
// "2027". A share of p percent of n users contains p percent of these users, with a deviation of about √n users.
package share

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"
)

// Kind is the purpose of a share of users: a holdout (users who get no messages) or a sample.
type Kind string

// These constants are the possible purposes of a share of users.
const (
	Holdout Kind = "holdout"
	Sample  Kind = "sample"
)

// MaxSalt is the maximum length of a salt in bytes.
const MaxSalt = 128

// Share is a share of all users (from 0 up to a percentage), or a cell (from one percentage to another). The zero value
// contains no users.
type Share struct {
	from, to float64 // percent
	salt     string
	least    uint64 // users whose hash is below least are outside
	below    uint64 // users whose hash is at least below are outside, unless all is true
	all      bool
	prefix   string
}

// New returns the share with the given percentage, which must be above 0 and at most 100. If an argument is invalid,
// the error names the argument and the violated rule.
func New(kind Kind, percent float64, salt string) (Share, error) {
	switch {
	case !(percent > 0 && percent <= 100): // also rejects NaN
		return Share{}, fmt.Errorf("percent: must be a percentage above 0 and at most 100, got %v", percent)
	case salt == "" || len(salt) > MaxSalt:
		return Share{}, fmt.Errorf("salt: must be a text of 1 to %d bytes, got %d", MaxSalt, len(salt))
	}
	s := Share{to: percent, salt: salt, prefix: string(kind) + ":" + salt + ":"}
	s.below, s.all = bound(percent)
	return s, nil
}

// NewCell returns the cell between two percentages from 0 to 100. The returned cell contains the users in the share of
// "to" percent who are not in the share of "from" percent. If an argument is invalid, the error names the argument and
// the violated rule.
func NewCell(kind Kind, from, to float64, salt string) (Share, error) {
	if !(from >= 0 && from < 100) {
		return Share{}, fmt.Errorf("from: must be a percentage of at least 0 and below 100, got %v", from)
	}
	s, err := New(kind, to, salt)
	switch {
	case err != nil && !(to > 0 && to <= 100):
		return Share{}, fmt.Errorf("to: must be a percentage above 0 and at most 100, got %v", to)
	case err != nil:
		return Share{}, err
	case from >= to:
		return Share{}, fmt.Errorf("to: must be a percentage above the value of 'from' (%v), got %v", from, to)
	}
	s.from = from
	s.least, _ = bound(from)
	return s, nil
}

// The function "bound" returns the lowest hash that is outside a share of the given percentage. For a share with every
// hash, the result "all" is true, because no 64-bit number is above the highest hash.
func bound(percent float64) (below uint64, all bool) {
	if part := percent / 100; part < 1 {
		return uint64(math.Ldexp(part, 64)), false
	}
	return 0, true
}

// Percent returns the size of the share in percent.
func (s *Share) Percent() float64 { return s.to - s.from }

// The method From returns the lower boundary of the cell in percent. For a share, the method From returns 0.
func (s *Share) From() float64 { return s.from }

// The method To returns the upper boundary of the cell in percent.
func (s *Share) To() float64 { return s.to }

// Salt returns the salt of the share. Shares with different salts are independent.
func (s *Share) Salt() string { return s.salt }

// The function Has reports whether the user is in the share. The function Has allocates no memory.
func Has[User ~uint32 | ~uint64](s *Share, user User) bool {
	var marks [1]uint8
	Mark(s, []User{user}, marks[:], 1)
	return marks[0] != 0
}

// The function Mark sets marks[i] to the argument "mark" if users[i] is in the share and marks[i] is 0. The function
// Mark allocates no memory, and takes less time than a call of Has for each user.
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
