package capping

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Batch is one filter call to a store. For each of many users, the store decides whether one message may be sent.
type Batch struct {
	Message Message // the ID may be "" only when Record is false; stores keep the message, so that people can read logs
	Token   Token   // the result of Message.Token()
	Channel Channel // the channel of the send; 0: the send has no channel

	Users  []UserID // distinct users in any order; ascending is fastest
	Groups []uint8  // Groups[i] is the index into Rules for Users[i]
	Rules  [][]Rule // by group: up to 255 rules; 1 to 256 groups; a group without rules denies nobody

	// If Record is true, the store appends the allowed sends to the users' logs. If Record is false, the store only
	// decides and writes nothing.
	Record bool
	// At is the instant for which the store decides. At must be zero if Record is true. If At is zero, the store
	// decides for now and reads its own clock as late as possible.
	At Instant
	// Retention is the time for which a store keeps a log entry: the longest window of the policy, plus the widening
	// for differing clocks. Retention must be MinRetention to MaxRetention. A store deletes log entries that are older
	// than the longest Retention of its recent batches. The store therefore deletes no log entry that a limit needs,
	// even if the configuration lacks the limit for a short time.
	Retention time.Duration

	// Known[p] is the version of the live changes (changes of sets by API calls, see package live) that the caller has
	// applied for partition p of the store. If the store has another version for a partition, the store does not decide
	// the users of the partition: the verdicts of these users are Unavailable and Outdated. If Known is nil, the store
	// does not compare versions of live changes.
	Known []string
	// The store sets Outdated if the verdict of any user is Outdated, so that callers need not read every verdict.
	// Outdated may be nil.
	Outdated *atomic.Bool
	// Since is the instant of the call's first attempt with an unknown result. If a log has this message with an
	// instant at or after Since, an earlier attempt of this call recorded the send. The verdict is then Allowed, not
	// Replayed. A zero Since means that no attempt had an unknown result.
	Since Instant
}

// Horizon returns the latest instant whose log entries are too old for the batch. The store ignores log entries at this
// instant (the horizon) and earlier entries.
func (b *Batch) Horizon(now Instant) Instant {
	return now - Instant(b.Retention.Milliseconds())
}

// MinRetention and MaxRetention are the bounds of Batch.Retention.
const (
	MinRetention = time.Millisecond
	MaxRetention = 5 * 366 * 24 * time.Hour
)

// maxGroups is the largest number of groups (users with the same rules) in a batch. maxRules is the largest number of
// rules in a group. The index of a group and the index of a rule each take one byte.
const (
	maxGroups = 256
	maxRules  = 255
)

// MaxShadow is the largest number of shadow rules (rules that count but deny nobody) in a group of users. Shadow rules
// must be among the first 32 rules of a group, because each has one bit in Verdict.Shadow.
const MaxShadow = 32

// Check returns an error if no store could decide the batch, or if the number of verdicts is wrong. Every store calls
// Check before all other work, so that wrong arguments make only their own call fail. The method Check does not look
// for duplicate users. If a batch lists a user twice, a store records at most one send to that user.
func (b *Batch) Check(verdicts []Verdict) error {
	switch {
	case len(b.Groups) != len(b.Users) || len(verdicts) != len(b.Users):
		return fmt.Errorf(
			"batch of decisions about %d users must have one rule group and one verdict for each user, "+
				"got %d group numbers and %d verdicts",
			len(b.Users), len(b.Groups), len(verdicts))
	case b.Retention < MinRetention || b.Retention > MaxRetention:
		return fmt.Errorf("retention, the time for which sends are stored, must be %v to %v, got %v",
			MinRetention, MaxRetention, b.Retention)
	case b.At < 0 || b.At >= Never:
		return fmt.Errorf("batch of decisions: the time must be between the years 2024 and 2058, "+
			"got %d ms since 2024-01-01T00:00:00Z", b.At)
	case b.Record && b.At != 0:
		return errors.New("batch of decisions that records sends must not set a time: " +
			"the store records sends at its current time")
	case b.Record && b.Token == (Token{}):
		return errors.New("batch of decisions that records sends must have a message id")
	}
	return b.checkRules()
}

func (b *Batch) checkRules() error {
	if len(b.Rules) == 0 || len(b.Rules) > maxGroups {
		return fmt.Errorf("batch of decisions must have 1 to %d groups of rules, got %d", maxGroups, len(b.Rules))
	}
	if !allBelow(b.Groups, len(b.Rules)) {
		return fmt.Errorf("batch of decisions assigns a user to rule group %d, but has only %d rule groups",
			slices.Max(b.Groups), len(b.Rules))
	}
	for g, rules := range b.Rules {
		if len(rules) > maxRules {
			return fmt.Errorf("rule group %d must have at most %d rules, got %d", g, maxRules, len(rules))
		}
		for i := range rules {
			if err := rules[i].check(); err != nil {
				return fmt.Errorf("rule group %d: rule %d: %w", g, i, err)
			}
			if rules[i].Shadow && i >= MaxShadow {
				return fmt.Errorf(
					"rule group %d has a shadow rule (which denies nobody) at index %d, "+
						"but shadow rules must be among the first %d rules",
					g, i, MaxShadow)
			}
		}
	}
	return nil
}

// allBelow reports whether every group number is below n, where n is 1 to 256. The function allBelow compares eight
// numbers at a time and takes a tenth of a nanosecond for each number. To compare a byte with n, allBelow computes a
// sum: the byte's lower seven bits plus the distance from n to the next multiple of 128. The highest bit of the sum is
// set exactly if the byte's lower seven bits are at least n modulo 128. If n is a multiple of 128, the highest bit of
// the sum is never set.
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

// Released says, for one user, whether a release has removed the send. The zero value of Released means that the result
// is unknown.
type Released uint8

// These constants are the possible results of a release for one user.
const (
	ReleaseUnavailable Released = iota // the result is unknown: release again
	ReleaseDone                        // the send was in the log and has been removed
	ReleaseAbsent                      // the send was not in the log
)

// CheckRelease returns an error when the arguments of Store.Release are invalid: a zero token (short hash of a
// message), or a number of results that differs from the number of users. CheckRelease returns nil for valid arguments.
func CheckRelease(token Token, users []UserID, released []Released) error {
	switch {
	case len(released) != len(users):
		return fmt.Errorf("release (cancellation) of sends must have one result for each of %d users, got %d results",
			len(users), len(released))
	case token == (Token{}):
		return errors.New("release (cancellation) of sends must name the message id")
	}
	return nil
}

// The function Distinct moves the first occurrence of each user to the start of the slice, and keeps the order of the
// users. Distinct returns the distinct users, and the number of removed duplicates. The result of Distinct uses the
// memory of the argument. The function Distinct runs in linear time, with an open-addressing hash set that has at least
// twice as many slots as users. The hash function of Distinct mixes all bits of an id with a seed that is new in every
// call. Consecutive ids therefore do not collide more often than random ids, and an attacker cannot choose ids that
// collide.
func Distinct(users []UserID) (distinct []UserID, duplicates int) { return DistinctMoved(users, nil) }

// DistinctMoved works like Distinct, and also calls the function in the argument "moved" for each user that moves to a
// lower index. The argument "moved" of DistinctMoved may be nil.
func DistinctMoved(users []UserID, moved func(to, from int)) (distinct []UserID, duplicates int) {
	all := UserID(0)
	for _, user := range users {
		all |= user
	}
	if all <= MaxDense {
		return distinctIn[uint32](users, moved) // 32-bit slots stay in the caches of the processor longer
	}
	return distinctIn[UserID](users, moved)
}

func distinctIn[Slot uint32 | UserID](users []UserID, moved func(to, from int)) (distinct []UserID, duplicates int) {
	size := 1 << max(4, bits.Len(uint(len(users)))+1)
	mask, shift := uint64(size-1), 65-bits.Len(uint(size))
	table := slotsOf[Slot](size)
	defer table.free()
	slots := table.slots
	seed := UserID(rand.Uint64())
	hasZero, n := false, 0
	for i, user := range users {
		if user == 0 {
			if hasZero {
				continue
			}
			hasZero = true
		} else {
			slot := mix(uint64(user^seed)) >> shift
			for slots[slot] != 0 && slots[slot] != Slot(user) {
				slot = (slot + 1) & mask
			}
			if slots[slot] != 0 {
				continue
			}
			slots[slot] = Slot(user)
		}
		users[n] = user
		if n < i && moved != nil {
			moved(n, i)
		}
		n++
	}
	return users[:n], len(users) - n
}

// mostPooled is the largest size, in slots, of a hash set whose memory later calls reuse. Reusing memory saves time,
// because allocating a hash set of this size takes longer than the search for duplicates.
const mostPooled = 1 << 18

// hashSet is the memory of a hash set of users. An empty slot of the hash set holds 0.
type hashSet[Slot uint32 | UserID] struct{ slots []Slot }

var narrowSlots, wideSlots sync.Pool // *hashSet[uint32] and *hashSet[UserID]

// slotsOf returns a hash set with the given number of slots, all of them empty.
func slotsOf[Slot uint32 | UserID](size int) *hashSet[Slot] {
	if t, ok := slotPool[Slot]().Get().(*hashSet[Slot]); ok && cap(t.slots) >= size {
		t.slots = t.slots[:size]
		clear(t.slots)
		return t
	}
	return &hashSet[Slot]{make([]Slot, size)}
}

// The method "free" returns the memory of the hash set to a pool, so that a later call can reuse the memory.
func (t *hashSet[Slot]) free() {
	if cap(t.slots) <= mostPooled {
		slotPool[Slot]().Put(t)
	}
}

func slotPool[Slot uint32 | UserID]() *sync.Pool {
	if _, narrow := any(Slot(0)).(uint32); narrow {
		return &narrowSlots
	}
	return &wideSlots
}

// The function "mix" returns a hash of v. The upper bits of the hash depend on every bit of v.
func mix(v uint64) uint64 {
	v = (v ^ v>>32) * 0x9fb21c651e98df25
	return (v ^ v>>29) * 0x9e3779b97f4a7c15
}
