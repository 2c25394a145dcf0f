package capping

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// Batch is one filter call: one message, many users.
type Batch struct {
	Message Message // its ID is "" only when Record is false; stores remember it, so that logs can be read by people
	Token   Token   // Message.Token()
	Channel Channel // of the send; 0: none

	Users  []UserID // distinct, any order (ascending is fastest)
	Groups []uint8  // Groups[i] is the index into Rules of Users[i]
	Rules  [][]Rule // rules by group, 1 to 256 groups of up to 255 rules; an empty group denies nobody

	// Record: append allowed sends to the logs. False: decide only, write nothing.
	Record bool
	// At: decide as of this instant, only with Record false. 0: now, by the
	// clock of the store, read as late as possible.
	At Instant
	// Retention is how long an entry is kept, MinRetention to MaxRetention: the
	// longest window of the policy, widened. A store forgets by the longest that was in force within
	// itself, so that a limit that is gone for a moment erases nothing.
	Retention time.Duration
}

// Horizon is the instant at or before which entries are forgotten.
func (b *Batch) Horizon(now Instant) Instant {
	return now - Instant(b.Retention.Milliseconds())
}

// The bounds of Batch.Retention.
const (
	MinRetention = time.Millisecond
	MaxRetention = 5 * 366 * 24 * time.Hour
)

// The most groups of a batch and rules of a group: their numbers are bytes.
const (
	maxGroups = 256
	maxRules  = 255
)

// MaxShadow is how many rules of a group can be shadow rules: the first ones, a bit of Verdict.Shadow each.
const MaxShadow = 32

// Check is why no store can decide b, with so many verdicts to set; nil: every
// store can. Every store asks before it does anything, so that a caller's
// mistake is an error of that call and of nothing else. That users are distinct
// is not checked: one who is given twice has one send recorded at most.
func (b *Batch) Check(verdicts []Verdict) error {
	switch {
	case len(b.Groups) != len(b.Users) || len(verdicts) != len(b.Users):
		return fmt.Errorf("batch of %d users must have one group and one verdict per user, got %d and %d",
			len(b.Users), len(b.Groups), len(verdicts))
	case b.Retention < MinRetention || b.Retention > MaxRetention:
		return fmt.Errorf("retention: must be %v to %v, got %v", MinRetention, MaxRetention, b.Retention)
	case b.At < 0 || b.At >= Never:
		return fmt.Errorf("batch time is %d, which is not between the years 2024 and 2058", b.At)
	case b.Record && b.At != 0:
		return errors.New("batch that records sends must have the current time")
	case b.Record && b.Token == (Token{}):
		return errors.New("batch that records sends must have a message id")
	}
	return b.checkRules()
}

func (b *Batch) checkRules() error {
	if len(b.Rules) == 0 || len(b.Rules) > maxGroups {
		return fmt.Errorf("batch has %d groups of rules and must have 1 to %d", len(b.Rules), maxGroups)
	}
	if !allBelow(b.Groups, len(b.Rules)) {
		return fmt.Errorf("group %d does not exist: the batch has rules for %d groups",
			slices.Max(b.Groups), len(b.Rules))
	}
	for g, rules := range b.Rules {
		if len(rules) > maxRules {
			return fmt.Errorf("group %d has %d rules and must have at most %d", g, len(rules), maxRules)
		}
		for i := range rules {
			if err := rules[i].check(); err != nil {
				return fmt.Errorf("group %d: rule %d: %w", g, i, err)
			}
			if rules[i].Shadow && i >= MaxShadow {
				return fmt.Errorf("group %d: rule %d: a shadow rule must be among the first %d rules", g, i, MaxShadow)
			}
		}
	}
	return nil
}

// allBelow reports whether every group is below n, 1 to 256. It looks at eight
// at a time, a tenth of a nanosecond each: adding what is lacking to 128 sets
// the highest bit of a byte exactly when its lower seven reach it.
func allBelow(groups []uint8, n int) bool {
	if n == maxGroups {
		return true
	}
	const ones, high = 0x0101010101010101, 0x8080808080808080
	lacking := ones * uint64((maxGroups-n)%128)
	over := uint64(0)
	for ; len(groups) >= 8; groups = groups[8:] {
		word := binary.LittleEndian.Uint64(groups)
		reached := word&^high + lacking
		if n <= 128 {
			over |= reached | word
		} else {
			over |= reached & word
		}
	}
	for _, group := range groups {
		if int(group) >= n {
			return false
		}
	}
	return over&high == 0
}

// Released is what a release did for one user. The zero value is unknown.
type Released uint8

// The results of a release.
const (
	ReleaseUnavailable Released = iota // not known: release again
	ReleaseDone                        // the send was in the log and is no more
	ReleaseAbsent                      // the send was not in the log
)

// CheckRelease is why no store can take these arguments of Store.Release, a
// message without a token, or not one result for each user; nil: every store can.
func CheckRelease(token Token, users []UserID, released []Released) error {
	switch {
	case len(released) != len(users):
		return fmt.Errorf("release of %d users must have one result per user, got %d", len(users), len(released))
	case token == (Token{}):
		return errors.New("release must have a message id")
	}
	return nil
}

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
