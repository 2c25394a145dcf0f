package segments

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/parallel"
)

// A Snapshot is one immutable generation (published version) in memory. A Snapshot can look up the segment, sets and
// time zone of users. Instead of the bitmaps of the segments, a Snapshot has a bitmap.CodeMap (map from user numbers to
// segment codes). A Snapshot is safe for concurrent use.
type Snapshot struct {
	manifest Manifest
	codes    *bitmap.CodeMap
	sets     map[string]*bitmap.Bitmap
	zones    *zoneMap
	// For dense ids (32-bit integers), the fields scheme and dictionary are nil.
	scheme     *ids.Scheme
	dictionary *Dictionary
	back       *Back // converts user numbers to ids; nil: not available or not needed

	beside sync.Once
	// The first call of Unsegmented computes the field unsegmented.
	unsegmented atomic.Pointer[bitmap.Bitmap]

	counting sync.Once
	zoneless uint64 // see Zoneless
}

// SegmentSize describes the size of one segment or set in a snapshot.
type SegmentSize struct {
	Name        string
	Cardinality uint64 // number of users in the bitmap
	SizeBytes   int64  // size of the encoded bitmap
}

// The method Generation returns the name of the generation (published version).
func (s *Snapshot) Generation() string { return s.manifest.Generation }

// CreatedAt returns the creation time of the generation (published version).
func (s *Snapshot) CreatedAt() time.Time { return s.manifest.CreatedAt }

// The method Names returns the names of the segments in the order of precedence: the segment with code c is
// Names()[c-1]. The caller of Names owns the slice.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.manifest.Segments))
	for i, segment := range s.manifest.Segments {
		names[i] = segment.Name
	}
	return names
}

// Segments returns the segments with their sizes, in the order of precedence. The caller of Segments owns the slice.
func (s *Snapshot) Segments() []SegmentSize {
	sizes := make([]SegmentSize, len(s.manifest.Segments))
	for i, segment := range s.manifest.Segments {
		sizes[i] = SegmentSize{Name: segment.Name, Cardinality: segment.Cardinality, SizeBytes: segment.SizeBytes}
	}
	return sizes
}

// Sets returns the sets with their sizes, in the order of the manifest. The caller of Sets owns the slice.
func (s *Snapshot) Sets() []SegmentSize {
	sizes := make([]SegmentSize, len(s.manifest.Sets))
	for i, set := range s.manifest.Sets {
		sizes[i] = SegmentSize{Name: set.Name, Cardinality: set.Cardinality, SizeBytes: set.SizeBytes}
	}
	return sizes
}

// The method Set returns the bitmap of a set, or nil if there is no set with this name.
func (s *Snapshot) Set(name string) *bitmap.Bitmap { return s.sets[name] }

// Codes returns the map from user numbers to the segment codes that Lookup returns.
func (s *Snapshot) Codes() *bitmap.CodeMap { return s.codes }

// Unsegmented returns the users who are in a set but in no segment. The first call of Unsegmented computes the users on
// all CPU cores, and the snapshot keeps the result for later calls.
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

// The method Zones returns the time zones of the generation's time zone sets, in the order of the manifest.
func (s *Snapshot) Zones() []*time.Location { return s.zones.places }

// LookupZones sets zones[i] to a code for the time zone of users[i]: the zone's index in Zones plus 1, or 0 for no
// zone. LookupZones does not allocate memory.
func (s *Snapshot) LookupZones(users []uint32, zones []uint16) { s.zones.lookup(users, zones) }

// SizeBytes returns the size of the snapshot's generation (published version) in memory, in bytes.
func (s *Snapshot) SizeBytes() int64 { return s.beyond(map[any]bool{}) }

// The method "beyond" returns the size in memory of the generation's bitmaps, maps and files that are not in the
// argument "counted" yet. The method "beyond" also adds the newly counted bitmaps, maps and files to "counted".
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
	if s.dictionary != nil {
		count(s.dictionary, s.dictionary.SizeBytes())
	}
	if s.back != nil {
		count(s.back, int64(len(s.back.raw)))
	}
	return size
}

// Lookup sets codes[i] to the segment code of users[i]: the segment's index in Names plus 1, or 0 for no segment. The
// user numbers may be in any order, but Lookup is fastest with ascending numbers. len(codes) must be at least
// len(users). Lookup does not allocate memory.
func (s *Snapshot) Lookup(users []uint32, codes []uint8) { s.codes.Lookup(users, codes) }

// The struct "memory" lists bitmaps, maps and files of loaded generations that a new generation (published version) can
// share. The Refresher therefore neither reads nor stores a bitmap twice. Instead of bitmaps of its segments, a
// snapshot has a CodeMap, and a new generation can share this CodeMap if no segment has changed.
type memory struct {
	snapshots []*Snapshot
	sets      map[string]*bitmap.Bitmap // by SHA-256
	// The field cores is the number of CPU cores for loading a generation. While a generation is in use, cores is half
	// of all CPU cores, but at least one, so that API calls do not wait.
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

// The method "codes" returns the CodeMap of the segments if a loaded generation (published version) has the same
// segments as the manifest m, and otherwise nil.
func (known *memory) codes(m *Manifest) *bitmap.CodeMap {
	for _, s := range known.snapshots {
		if slices.EqualFunc(s.manifest.Segments, m.Segments, func(a, b Segment) bool { return a.same(&b) }) {
			return s.codes
		}
	}
	return nil
}

// The method "zones" returns the map of the time zone sets if a loaded generation (published version) has the same sets
// as the manifest m, and otherwise nil.
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

// The method "snapshot" builds the Snapshot of a generation (published version). The Snapshot shares the bitmaps and
// maps that are already in memory.
func (known *memory) snapshot(g *Generation) *Snapshot {
	s := &Snapshot{manifest: *g.Manifest, codes: known.codes(g.Manifest), zones: known.zones(g.Manifest),
		sets: map[string]*bitmap.Bitmap{}, scheme: g.Scheme, dictionary: g.Dictionary,
		back: g.Back}
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
