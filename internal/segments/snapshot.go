package segments

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/bitmap"
	"capper/internal/parallel"
)

// Snapshot is one generation in memory, immutable: which segment is a user in?
// Of its segments it holds no bitmaps but a bitmap.CodeMap of them. Safe for concurrent use.
type Snapshot struct {
	manifest Manifest
	codes    *bitmap.CodeMap
	sets     map[string]*bitmap.Bitmap
	zones    *zoneMap

	beside sync.Once
	// unsegmented is set once somebody has asked for it.
	unsegmented atomic.Pointer[bitmap.Bitmap]

	counting sync.Once
	zoneless uint64 // see Zoneless
}

// SegmentSize is one segment of a snapshot.
type SegmentSize struct {
	Name        string
	Cardinality uint64 // users in the bitmap
	SizeBytes   int64  // of the serialized bitmap
}

// Generation names the generation.
func (s *Snapshot) Generation() string { return s.manifest.Generation }

// CreatedAt is when the generation was built.
func (s *Snapshot) CreatedAt() time.Time { return s.manifest.CreatedAt }

// Names lists the segments in order of precedence: the segment of code c is
// Names()[c-1]. The slice is the caller's.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.manifest.Segments))
	for i, segment := range s.manifest.Segments {
		names[i] = segment.Name
	}
	return names
}

// Segments lists the segments with their sizes, in order of precedence. The
// slice is the caller's.
func (s *Snapshot) Segments() []SegmentSize {
	sizes := make([]SegmentSize, len(s.manifest.Segments))
	for i, segment := range s.manifest.Segments {
		sizes[i] = SegmentSize{Name: segment.Name, Cardinality: segment.Cardinality, SizeBytes: segment.SizeBytes}
	}
	return sizes
}

// Sets lists the sets with their sizes, in the order of the manifest. The slice is the caller's.
func (s *Snapshot) Sets() []SegmentSize {
	sizes := make([]SegmentSize, len(s.manifest.Sets))
	for i, set := range s.manifest.Sets {
		sizes[i] = SegmentSize{Name: set.Name, Cardinality: set.Cardinality, SizeBytes: set.SizeBytes}
	}
	return sizes
}

// Set is the bitmap of a set, nil where there is none of that name.
func (s *Snapshot) Set(name string) *bitmap.Bitmap { return s.sets[name] }

// Codes says which segment every user is in: the codes are those of Lookup.
func (s *Snapshot) Codes() *bitmap.CodeMap { return s.codes }

// Unsegmented is the users who are in a set and in no segment. The first call works
// it out, on all cores, and the snapshot keeps it.
func (s *Snapshot) Unsegmented() *bitmap.Bitmap {
	s.beside.Do(func() {
		blocks := 0
		for _, set := range s.sets {
			blocks = max(blocks, set.Blocks())
		}
		encoded := make([]bitmap.Encoded, blocks)
		parallel.OnAllCores(blocks, func(key int) { encoded[key] = s.unsegmentedIn(key) })
		s.unsegmented.Store(bitmap.Join(encoded))
	})
	return s.unsegmented.Load()
}

func (s *Snapshot) unsegmentedIn(key int) bitmap.Encoded {
	var segmented, rest bitmap.Words
	extent := s.codes.LoadAny(key, &segmented)
	if extent == bitmap.Everything {
		return bitmap.Encoded{}
	}
	for _, set := range s.sets {
		set.Add(key, &rest)
	}
	if extent == bitmap.Some {
		rest.Without(&segmented)
	}
	return rest.Encode(key)
}

// Zones lists the time zones of which there are sets, in the order of the manifest.
func (s *Snapshot) Zones() []*time.Location { return s.zones.places }

// LookupZones sets zones[i] to the time zone that users[i] is in: 0 for none, else
// the index in Zones plus 1. It does not allocate.
func (s *Snapshot) LookupZones(users []uint32, zones []uint16) { s.zones.lookup(users, zones) }

// SizeBytes is the memory that the generation takes.
func (s *Snapshot) SizeBytes() int64 { return s.beyond(map[any]bool{}) }

// beyond is the memory that the generation takes beside the parts that are counted
// already; its own are counted from then on.
func (s *Snapshot) beyond(counted map[any]bool) (size int64) {
	count := func(part any, bytes int64) {
		if !counted[part] {
			counted[part] = true
			size += bytes
		}
	}
	count(s.codes, s.codes.SizeBytes())
	count(s.zones, s.zones.sizeBytes())
	for _, set := range s.sets {
		count(set, set.SizeBytes())
	}
	if rest := s.unsegmented.Load(); rest != nil {
		count(rest, rest.SizeBytes())
	}
	return size
}

// Lookup sets codes[i] to the code of the segment that users[i] is in: 0 for
// none, else the segment's index in Names plus 1. Any order of users is right,
// ascending is fastest. codes must be at least as long as users. It does not
// allocate.
func (s *Snapshot) Lookup(users []uint32, codes []uint8) { s.codes.Lookup(users, codes) }

// memory is what a new generation shares with those in memory, instead of reading it
// again and holding it twice. Of segments only the CodeMap is there, so that one is
// shared when all segments are as they were.
type memory struct {
	snapshots []*Snapshot
	sets      map[string]*bitmap.Bitmap // by SHA-256
	// cores is how many cores a new generation may take: half of them, at least one, while
	// another is in use, so that calls do not wait behind the work on it.
	cores int
}

func newMemory(snapshots []*Snapshot) *memory {
	known := &memory{snapshots: snapshots, sets: map[string]*bitmap.Bitmap{}, cores: runtime.GOMAXPROCS(0)}
	if len(snapshots) > 0 {
		known.cores = max(1, known.cores/2)
	}
	for _, s := range snapshots {
		for i := range s.manifest.Sets {
			set := &s.manifest.Sets[i]
			known.sets[set.SHA256] = s.sets[set.Name]
		}
	}
	return known
}

// codes is the CodeMap of the segments of m, nil where there is none in memory.
func (known *memory) codes(m *Manifest) *bitmap.CodeMap {
	for _, s := range known.snapshots {
		if slices.EqualFunc(s.manifest.Segments, m.Segments, func(a, b Segment) bool { return a.same(&b) }) {
			return s.codes
		}
	}
	return nil
}

// zones is the map of the time zones of m, nil where there is none in memory.
func (known *memory) zones(m *Manifest) *zoneMap {
	for _, s := range known.snapshots {
		if slices.EqualFunc(s.manifest.zones(), m.zones(), func(a, b *Set) bool {
			return a.Name == b.Name &&
				a.same(&b.Segment)
		}) {
			return s.zones
		}
	}
	return nil
}

// snapshot lays the generation out for lookups, with what is in memory already.
func (known *memory) snapshot(g *Generation) *Snapshot {
	s := &Snapshot{manifest: *g.Manifest, codes: known.codes(g.Manifest), zones: known.zones(g.Manifest),
		sets: map[string]*bitmap.Bitmap{}}
	for i, set := range g.Sets {
		s.sets[g.Manifest.Sets[i].Name] = set
	}
	if s.codes == nil {
		s.codes = bitmap.NewCodeMap(known.cores, g.Bitmaps)
	}
	if s.zones == nil {
		s.zones = newZoneMap(s, known.cores)
	}
	return s
}
