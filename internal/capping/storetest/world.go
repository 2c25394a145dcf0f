package storetest

import (
	"slices"
	"strings"
	"time"

	"capper/internal/capping"
)

// A world holds the segments and sets of a random test, with their users. If a user is in several segments, or in
// several sets of time zones, the first segment or set applies.
type world struct {
	generation string
	segments   []members
	sets       []members
	zones      []*time.Location // time zones that have a set, in the order of the sets
}

// The type "members" is a segment or a set of the test world, with its users.
type members struct {
	name  string
	users []capping.UserID
}

func (m members) has(user capping.UserID) bool { return slices.Contains(m.users, user) }

// The method "in" reports whether the user is in the set with the given name.
func (w *world) in(name string, user capping.UserID) bool {
	for _, set := range w.sets {
		if set.name == name && set.has(user) {
			return true
		}
	}
	return false
}

func (w *world) segmentOf(user capping.UserID) string {
	for _, segment := range w.segments {
		if segment.has(user) {
			return segment.name
		}
	}
	return ""
}

const zonePrefix = "tz/"

// zoneOf returns the name of the time zone whose set contains the user, or "" if the user is in no time zone set.
func (w *world) zoneOf(user capping.UserID) string {
	for _, set := range w.sets {
		if zone, ok := strings.CutPrefix(set.name, zonePrefix); ok && set.has(user) {
			return zone
		}
	}
	return ""
}

func load(name string) *time.Location {
	location, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return location
}

// The type "segments" makes a world usable as capping.Segments.
type segments struct {
	capping.DenseIDs
	*world
}

func (s segments) Generation() string { return s.generation }

func (s segments) Names() (names []string) {
	for _, segment := range s.segments {
		names = append(names, segment.name)
	}
	return names
}

func (s segments) Lookup(numbers []uint32, codes []uint8) {
	for i, number := range numbers {
		codes[i] = uint8(1 + slices.Index(s.Names(), s.segmentOf(capping.UserID(number))))
	}
}

func (s segments) Set(name string) (capping.Set, bool) {
	for _, set := range s.sets {
		if set.name == name {
			return set, true
		}
	}
	return nil, false
}

func (s segments) zoneNames() (names []string) {
	for _, set := range s.sets {
		if zone, ok := strings.CutPrefix(set.name, zonePrefix); ok {
			names = append(names, zone)
		}
	}
	return names
}

func (s segments) Zones() []*time.Location { return s.zones }

func (s segments) LookupZones(numbers []uint32, zones []uint16) {
	for i, number := range numbers {
		zones[i] = uint16(1 + slices.Index(s.zoneNames(), s.zoneOf(capping.UserID(number))))
	}
}

// The method Mark sets marks[i] to the argument "mark" for each user i in the set if marks[i] is still 0.
func (m members) Mark(users []capping.UserID, _ []uint32, marks []uint8, mark uint8) {
	for i, user := range users {
		if marks[i] == 0 && m.has(user) {
			marks[i] = mark
		}
	}
}
