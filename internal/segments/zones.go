package segments

import (
	"strings"
	"time"

	"capper/internal/bitmap"
)

// zoneMap says which time zone a user is in. The sets of time zones are many and
// nearly disjoint, so that one map of all of them costs less than asking each.
type zoneMap struct {
	places []*time.Location
	maps   []*bitmap.CodeMap // of mapZones zones each
}

// mapZones is how many zones one CodeMap can tell apart.
const mapZones = 255

func newZoneMap(g *Generation) *zoneMap {
	z := &zoneMap{}
	var sets []*bitmap.Bitmap
	for i := range g.Manifest.Sets {
		name := g.Manifest.Sets[i].Name
		if !strings.HasPrefix(name, ZonePrefix) {
			continue
		}
		if place, err := Zone(name); err == nil { // a manifest with another name was refused
			z.places, sets = append(z.places, place), append(sets, g.Sets[i])
		}
	}
	for first := 0; first < len(sets); first += mapZones {
		z.maps = append(z.maps, bitmap.NewCodeMap(sets[first:min(first+mapZones, len(sets))]))
	}
	return z
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
