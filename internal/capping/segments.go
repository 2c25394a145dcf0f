package capping

import "time"

// Segments is one generation of segments and sets. It is immutable.
type Segments interface {
	Generation() string
	// Names lists the segments in order of precedence, at most 255.
	Names() []string
	// Lookup sets codes[i] to the segment of users[i]: 0 for none, else the
	// index into Names plus 1.
	Lookup(users []UserID, codes []uint8)
	// Set is a set by its name; ok is false where the generation has none.
	Set(name string) (set Set, ok bool)
	// Zones lists the time zones of which the generation has sets, in order of precedence.
	Zones() []*time.Location
	// LookupZones sets zones[i] to the time zone of users[i]: 0 for none, else the
	// index into Zones plus 1.
	LookupZones(users []UserID, zones []uint16)
}

// Set is the users of one set.
type Set interface {
	// Mark sets marks[i] to mark where users[i] is in the set and marks[i] is 0. Any
	// order of users is right, ascending is fastest.
	Mark(users []UserID, marks []uint8, mark uint8)
}
