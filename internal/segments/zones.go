package segments

import (
	_ "embed"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a zone must not depend on the machine's files

	"capper/internal/bitmap"
)

// zoneNames are the names of the IANA database, one a line. The names of a machine's files
// are others besides: right/Asia/Singapore counts leap seconds, localtime is anything,
// and some file systems take asia/singapore for Asia/Singapore.
//
//go:embed zones.txt
var zoneNames string

// Zone is the time zone of a set whose name begins with ZonePrefix.
func Zone(set string) (*time.Location, error) {
	location, err := LoadZone(strings.TrimPrefix(set, ZonePrefix))
	if err != nil {
		return nil, fmt.Errorf("set name %q: %w", set, err)
	}
	return location, nil
}

// LoadZone is a time zone by its name in the IANA database, and by no other.
func LoadZone(name string) (*time.Location, error) {
	if strings.Contains(zoneNames, "\n"+name+"\n") {
		if location, err := time.LoadLocation(name); err == nil {
			return location, nil
		}
	}
	return nil, fmt.Errorf("%q is no time zone of the IANA database such as Asia/Singapore", name)
}

// zoneMap says which time zone a user is in. The sets of time zones are many and
// nearly disjoint, so that one map of all of them costs less than asking each.
type zoneMap struct {
	places []*time.Location
	maps   []*bitmap.CodeMap // of mapZones zones each
}

// mapZones is how many zones one CodeMap can tell apart.
const mapZones = 255

func newZoneMap(s *Snapshot, goroutines int) *zoneMap {
	z := &zoneMap{}
	var sets []*bitmap.Bitmap
	for _, set := range s.manifest.zones() {
		if place, err := Zone(set.Name); err == nil { // a manifest with another name was refused
			z.places, sets = append(z.places, place), append(sets, s.sets[set.Name])
		}
	}
	for first := 0; first < len(sets); first += mapZones {
		z.maps = append(z.maps, bitmap.NewCodeMapBy(goroutines, sets[first:min(first+mapZones, len(sets))]))
	}
	return z
}

// zones are the sets of time zones.
func (m *Manifest) zones() (list []*Set) {
	for i := range m.Sets {
		if strings.HasPrefix(m.Sets[i].Name, ZonePrefix) {
			list = append(list, &m.Sets[i])
		}
	}
	return list
}

func (z *zoneMap) sizeBytes() (size int64) {
	for _, m := range z.maps {
		size += m.SizeBytes()
	}
	return size
}

func (z *zoneMap) lookup(users []uint32, zones []uint16) {
	zones = zones[:len(users)]
	clear(zones)
	var codes [256]uint8
	for first := 0; first < len(users); first += len(codes) {
		part := users[first:min(first+len(codes), len(users))]
		for k, m := range z.maps {
			m.Lookup(part, codes[:])
			for i := range part {
				if zones[first+i] == 0 && codes[i] != 0 {
					zones[first+i] = uint16(k*mapZones) + uint16(codes[i])
				}
			}
		}
	}
}
