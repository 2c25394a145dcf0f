package capping

import (
	"context"
	"time"
)

// Segments is one generation (published version) of segments and sets of users. A generation never changes.
type Segments interface {
	Generation() string
	// Names returns the segments in order of precedence, at most 255.
	Names() []string
	// Numbers sets numbers[i] to the number of users[i] in the bitmaps of the generation. The number of a dense id is
	// the id itself.
	Numbers(users []UserID, numbers []uint32)
	// Lookup sets codes[i] to the code of the segment of the user with numbers[i]. The code is the index of the segment
	// in Names plus 1, or 0 for no segment.
	Lookup(numbers []uint32, codes []uint8)
	// Set returns the set with the given name. The result "ok" is false if the generation has no such set.
	Set(name string) (set Set, ok bool)
	// Zones returns the time zones that have a set of users in the generation, in order of precedence.
	Zones() []*time.Location
	// LookupZones sets zones[i] to the time zone of the user with numbers[i], as the index of the zone in Zones plus 1,
	// or 0 for no time zone.
	LookupZones(numbers []uint32, zones []uint16)
}

// DenseIDs implements Segments.Numbers for dense ids (32-bit integers).
type DenseIDs struct{}

// The method Numbers sets numbers[i] to the dense id of users[i].
func (DenseIDs) Numbers(users []UserID, numbers []uint32) {
	numbers = numbers[:len(users)]
	for i, user := range users {
		numbers[i] = Dense(user)
	}
}

// Set is a named set of users.
type Set interface {
	// Mark sets marks[i] to mark if the set contains users[i] and marks[i] is 0. numbers[i] is the number of users[i]
	// in the bitmaps. The users may be in any order; ascending order is fastest.
	Mark(users []UserID, numbers []uint32, marks []uint8, mark uint8)
}

// SetByNumber is a set of users that is searched only by the users' numbers in bitmaps.
type SetByNumber struct {
	Members interface {
		Mark(numbers []uint32, marks []uint8, mark uint8)
	}
}

// Mark implements Set.
func (s SetByNumber) Mark(_ []UserID, numbers []uint32, marks []uint8, mark uint8) {
	s.Members.Mark(numbers, marks, mark)
}

// Live is a generation (published version) of segments together with live changes: changes of the sets by API calls
// (see package live).
type Live interface {
	Segments
	// Versions returns, for each partition of the store, the version of the live changes (changes by API calls) in the
	// sets. Versions returns nil if only one instance uses the store, because this instance has every change.
	Versions() []string
	// Renew returns the same generation with every live change (change by an API call) for the users that was stored
	// before Renew began. If Renew returns an error, the returned generation lacks live changes for some users. The
	// method Versions of this generation returns the versions of the live changes that the generation contains.
	Renew(ctx context.Context, users []UserID) (Live, error)
	// Behind returns the latest instant of removed live changes (changes by API calls) of the set that this generation
	// lacks. The store removes live changes as soon as a newer generation contains them. The result 0 means that the
	// generation lacks no live change of the set.
	Behind(set string) Instant
}
