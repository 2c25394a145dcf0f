package segments

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"capper/internal/bitmap"
	"capper/internal/parallel"
	"capper/internal/zones"
)

// Zone returns the time zone in the name of a time zone set, such as Asia/Singapore for the set tz/Asia/Singapore.
func Zone(set string) (*time.Location, error) {
	location, err := zones.Load(strings.TrimPrefix(set, ZonePrefix))
	if err != nil {
		return nil, fmt.Errorf("set name %q: %w", set, err)
	}
	return location, nil
}

// A zoneMap maps users to time zones. Because the time zone sets are numerous and nearly disjoint, a lookup in one map
// of all sets costs less than a lookup in each set.
type zoneMap struct {
	places []*time.Location
	maps   []*bitmap.CodeMap // each map is for up to mapZones zones
}

// mapZones is the maximum number of time zones that one bitmap.CodeMap can hold.
const mapZones = 255

func newZoneMap(s *Snapshot, goroutines int) *zoneMap {
	z := &zoneMap{}
	var sets []*bitmap.Bitmap
	for _, set := range s.manifest.zones() {
		if place, err := Zone(set.Name); err == nil { // a manifest with an invalid zone name was rejected earlier
			z.places, sets = append(z.places, place), append(sets, s.sets[set.Name])
		}
	}
	for first := 0; first < len(sets); first += mapZones {
		z.maps = append(z.maps, bitmap.NewCodeMap(goroutines, sets[first:min(first+mapZones, len(sets))]))
	}
	return z
}

// The method "zones" returns the entries of all time zone sets in the manifest.
func (m *Manifest) zones() (list []*Set) {
	for i := range m.Sets {
		if strings.HasPrefix(m.Sets[i].Name, ZonePrefix) {
			list = append(list, &m.Sets[i])
		}
	}
	return list
}

// Zoneless counts the users who are in a segment or set, but in no time zone set. For users without a time zone set,
// rules that depend on the time zone use the default time zone. The first call counts the users on half of the CPU
// cores, and the snapshot keeps the result.
func (s *Snapshot) Zoneless() uint64 {
	s.counting.Do(func() {
		blocks := s.codes.Blocks()
		for _, set := range s.sets {
			blocks = max(blocks, set.Blocks())
		}
		var users atomic.Uint64
		parallel.AtMost(max(1, runtime.GOMAXPROCS(0)/2), blocks, func(key int) { users.Add(uint64(s.zonelessIn(key))) })
		s.zoneless = users.Load()
	})
	return s.zoneless
}

func (s *Snapshot) zonelessIn(key int) int {
	var users, zoned, part bitmap.Words
	for _, m := range s.zones.maps {
		switch m.LoadAny(key, &part) {
		case bitmap.Everything:
			return 0
		case bitmap.Some:
			zoned.Or(&part)
		}
	}
	switch s.codes.LoadAny(key, &users) {
	case bitmap.Everything:
		users.Fill()
	case bitmap.Nothing:
		users.Clear()
	}
	for name, set := range s.sets {
		if !strings.HasPrefix(name, ZonePrefix) {
			set.Add(key, &users)
		}
	}
	users.Without(&zoned)
	return users.Count()
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
