package segments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"capper/internal/bitmap"
)

// FormatVersion is the version of the documents of a location, and of a manifest without sets.
const FormatVersion = 1

// SetsFormatVersion is the version of a manifest with sets: programs from before there
// were sets refuse it, and stay on what they have.
const SetsFormatVersion = 2

// RollbackReason begins the reason of a generation that a rollback made.
const RollbackReason = "rollback to "

// MaxSegments is how many segments a generation can have: a segment's code is one byte, 0 means none.
const MaxSegments = 255

// Manifest is the index of one generation: generations/<generation>.json.
type Manifest struct {
	FormatVersion int       `json:"format_version"`
	Generation    string    `json:"generation"`
	CreatedAt     time.Time `json:"created_at"`
	ToolVersion   string    `json:"tool_version"`
	// Reason is why the guard was, or was to be, overruled; empty when it was not.
	Reason string `json:"reason,omitempty"`
	// Segments in order of precedence: a user in two of them belongs to the earlier.
	Segments []Segment `json:"segments"`
	// Sets, which may overlap, in the order in which they were given: a user in two
	// sets of time zones is in the earlier.
	Sets []Set `json:"sets,omitempty"`
	// Accepted lists changes of single sets and segments that a publisher let pass by
	// name, the oldest first: those of this generation and of those before it.
	Accepted []Accepted `json:"accepted,omitempty"`
}

// MaxSets is how many sets a generation can have.
const MaxSets = 4096

// Set is one set of a manifest.
type Set struct {
	Segment
	// OnlyGrows: a build that takes more users away from it than MaxLoss is refused, see package guard.
	OnlyGrows bool `json:"only_grows,omitempty"`
	// MaxLoss is how many users may leave a set that only grows from one publish to the
	// next, per 100 users before; below 100. 0: none.
	MaxLoss float64 `json:"max_loss,omitempty"`
}

// MaxManifestBytes is above the size of a manifest with MaxSegments and MaxSets of the longest names.
const MaxManifestBytes = 4 << 20

// Entries lists what is said of each bitmap: of the segments, then of the sets, in their order.
func (m *Manifest) Entries() []*Segment {
	list := make([]*Segment, 0, len(m.Segments)+len(m.Sets))
	for i := range m.Segments {
		list = append(list, &m.Segments[i])
	}
	for i := range m.Sets {
		list = append(list, &m.Sets[i].Segment)
	}
	return list
}

// Segment is one segment of a manifest. Min and Max are the lowest and highest
// id, both absent when the segment is empty.
type Segment struct {
	Name        string  `json:"name"`
	Key         string  `json:"key"`
	SHA256      string  `json:"sha256"`
	SizeBytes   int64   `json:"size_bytes"`
	Cardinality uint64  `json:"cardinality"`
	Min         *uint32 `json:"min,omitempty"`
	Max         *uint32 `json:"max,omitempty"`
}

// segmentRule is the form of a segment's name.
var segmentRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ReservedName is how answers and metrics name the users in no segment.
const ReservedName = "default"

// CheckName says why name cannot be the name of a segment, nil when it can.
func CheckName(name string) error {
	if name == ReservedName {
		return fmt.Errorf("segment name %q: is reserved for users in no segment", name)
	}
	if !segmentRule.MatchString(name) {
		return fmt.Errorf("segment name %q: must be 1 to 64 letters, digits, '.', '_' or '-', beginning with a "+
			"letter or digit", name)
	}
	return nil
}

var setRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9._+-]+)*$`)

// MaxSetName is the most bytes of the name of a set.
const MaxSetName = 128

// ZonePrefix begins the names of sets of time zones: tz/Asia/Singapore.
const ZonePrefix = "tz/"

// AllName is how expressions call everybody.
const AllName = "all"

// dotted reports whether a part of the name is "." or "..": many a client and proxy
// turns a path that holds one into another path.
func dotted(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// CheckSetName says why name cannot be the name of a set, nil when it can.
func CheckSetName(name string) error {
	switch {
	case name == ReservedName || name == AllName:
		return fmt.Errorf("set name %q: is reserved in results and expressions", name)
	case len(name) > MaxSetName || !setRule.MatchString(name) || dotted(name):
		return fmt.Errorf("set name %q: must be 1 to %d letters, digits, '.', '_', '-' or '+', in parts between '/' "+
			"that are not '.' or '..', beginning with a letter or digit", name, MaxSetName)
	case strings.HasPrefix(name, ZonePrefix):
		if _, err := Zone(name); err != nil {
			return err
		}
	}
	return nil
}

// Describe is the manifest's entry for a bitmap.
func Describe(name string, b *bitmap.Bitmap) Segment {
	sum := b.SHA256()
	s := Segment{Name: name, Key: BitmapKey(sum), SHA256: sum, SizeBytes: int64(len(b.Bytes())),
		Cardinality: b.Cardinality()}
	if lowest, highest, ok := b.Bounds(); ok {
		s.Min, s.Max = &lowest, &highest
	}
	return s
}

// NewManifest describes a generation and names it.
func NewManifest(at time.Time, tool, reason string, list []Segment, sets ...Set) (*Manifest, error) {
	m := &Manifest{CreatedAt: at.UTC().Truncate(time.Millisecond), Segments: list, Sets: sets,
		ToolVersion: strings.ToValidUTF8(tool, "\ufffd"), Reason: strings.ToValidUTF8(reason, "\ufffd")}
	m.FormatVersion = m.version()
	m.Generation = m.name()
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// version is the lowest format version that has all that m says: programs from before
// it refuse what they could not understand.
func (m *Manifest) version() int {
	switch {
	case len(m.Accepted) > 0:
		return AcceptedFormatVersion
	case len(m.Sets) > 0:
		return SetsFormatVersion
	}
	return FormatVersion
}

// name is the name that the content of m has: its time, so that names sort by
// time, and a hash of every field, so that publishers of different content never
// share one and no field can change under its name.
func (m *Manifest) name() string {
	rest := *m
	rest.Generation = ""
	return TimeName(m.CreatedAt) + "-" + Sum(rest.Encode())[:8]
}

// sum is the SHA-256 of the manifest as it is stored, which current.json repeats.
func (m *Manifest) sum() string { return Sum(m.Encode()) }

// Encode returns the bytes of the manifest as they are stored.
func (m *Manifest) Encode() []byte {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode a manifest: %v", err)) // no field can fail
	}
	return append(raw, '\n')
}

// parseManifest decodes and checks the manifest of a generation: everything
// that can be known without the bitmaps. It takes the very bytes that encode
// wrote under this name, and nothing else.
func parseManifest(generation string, raw []byte) (*Manifest, error) {
	var m Manifest
	if err := decodeDocument(raw, &m, AcceptedFormatVersion); err != nil {
		return nil, fmt.Errorf("manifest of generation %s: %w", generation, err)
	}
	if m.Generation != generation {
		return nil, fmt.Errorf("manifest of generation %s: belongs to generation %q", generation, m.Generation)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("manifest of generation %s: %w", generation, err)
	}
	if is := m.name(); is != generation {
		return nil, fmt.Errorf("manifest of generation %s: damaged: its content belongs to the name %s",
			generation, is)
	}
	if !bytes.Equal(raw, m.Encode()) {
		return nil, fmt.Errorf("manifest of generation %s: damaged: its bytes differ from the published ones, "+
			"though the content is equal", generation)
	}
	return &m, nil
}

func (m *Manifest) check() error {
	if len(m.Segments) == 0 {
		return errors.New("manifest has no segments")
	}
	if len(m.Segments) > MaxSegments {
		return fmt.Errorf("manifest has %d segments and must have at most %d", len(m.Segments), MaxSegments)
	}
	if m.CreatedAt.IsZero() {
		return errors.New("created_at: must be set")
	}
	seen := map[string]bool{}
	for i, s := range m.Segments {
		if err := s.check(); err != nil {
			return fmt.Errorf("segments[%d]: %w", i, err)
		}
		if seen[s.Name] {
			return fmt.Errorf("segments[%d]: name %q is given twice", i, s.Name)
		}
		seen[s.Name] = true
	}
	if err := m.checkSets(seen); err != nil {
		return err
	}
	return m.checkAccepted()
}

func (m *Manifest) checkSets(seen map[string]bool) error {
	switch {
	case len(m.Sets) > MaxSets:
		return fmt.Errorf("manifest has %d sets and must have at most %d", len(m.Sets), MaxSets)
	case m.FormatVersion != m.version():
		with := fmt.Sprintf("%d sets", len(m.Sets))
		if n := len(m.Accepted); n > 0 {
			with += fmt.Sprintf(" and %d acceptances", n)
		}
		return fmt.Errorf("format_version %d: manifest with %s must have version %d",
			m.FormatVersion, with, m.version())
	}
	for i, s := range m.Sets {
		err := CheckSetName(s.Name)
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return fmt.Errorf("sets[%d]: %w", i, err)
		}
		if seen[s.Name] {
			return fmt.Errorf("sets[%d]: name %q is given twice", i, s.Name)
		}
		seen[s.Name] = true
	}
	return nil
}

func (s *Segment) check() error {
	if err := CheckName(s.Name); err != nil {
		return err
	}
	return s.checkBitmap()
}

func (s *Set) check() error {
	if !(s.MaxLoss >= 0 && s.MaxLoss < 100) || s.MaxLoss != 0 && !s.OnlyGrows {
		return fmt.Errorf("max_loss %v: must be from 0 to below 100, and requires a set that only grows", s.MaxLoss)
	}
	return s.checkBitmap()
}

func (s *Segment) checkBitmap() error {
	switch {
	case !sha256Rule.MatchString(s.SHA256):
		return fmt.Errorf("sha256 %q: must be 64 lower-case hex digits", s.SHA256)
	case s.Key != BitmapKey(s.SHA256):
		return fmt.Errorf("key %q: must be %q for this sha256", s.Key, BitmapKey(s.SHA256))
	case s.SizeBytes < 8 || s.SizeBytes > bitmap.MaxBytes:
		return fmt.Errorf("size_bytes %d: must be from 8 to %d", s.SizeBytes, bitmap.MaxBytes)
	case (s.Min == nil) != (s.Cardinality == 0), (s.Max == nil) != (s.Cardinality == 0):
		return fmt.Errorf("min and max: must be set if cardinality (%d) is above 0, and absent otherwise",
			s.Cardinality)
	}
	return nil
}

// open checks the bytes of the segment's bitmap against the manifest: size,
// hash, format, cardinality, bounds.
func (s *Segment) open(raw []byte) (*bitmap.Bitmap, error) {
	if int64(len(raw)) != s.SizeBytes {
		return nil, fmt.Errorf("bitmap has %d bytes, but the manifest says %d", len(raw), s.SizeBytes)
	}
	if got := Sum(raw); got != s.SHA256 {
		return nil, fmt.Errorf("checksum mismatch: sha256 is %s, but the manifest says %s", got, s.SHA256)
	}
	b, err := bitmap.Read(raw)
	if err != nil {
		return nil, err
	}
	return b, s.agree(b)
}

// agree requires b, whose bytes have the segment's hash, to be what the manifest says of it.
func (s *Segment) agree(b *bitmap.Bitmap) error {
	if int64(len(b.Bytes())) != s.SizeBytes {
		return fmt.Errorf("bitmap has %d bytes, but the manifest says %d", len(b.Bytes()), s.SizeBytes)
	}
	if b.Cardinality() != s.Cardinality {
		return fmt.Errorf("bitmap has %d users, but the manifest says %d", b.Cardinality(), s.Cardinality)
	}
	if lowest, highest, ok := b.Bounds(); ok && (lowest != *s.Min || highest != *s.Max) {
		return fmt.Errorf("bitmap has ids from %d to %d, but the manifest says %d to %d",
			lowest, highest, *s.Min, *s.Max)
	}
	return nil
}

// same reports whether two segments, of whatever names, are said to have the same bitmap.
func (s *Segment) same(other *Segment) bool {
	return s.SHA256 == other.SHA256 && s.SizeBytes == other.SizeBytes && s.Cardinality == other.Cardinality &&
		equal(s.Min, other.Min) && equal(s.Max, other.Max)
}

func equal(a, b *uint32) bool { return a == b || a != nil && b != nil && *a == *b }
