package segments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"capper/internal/bitmap"
)

// FormatVersion is the format version of the JSON documents at a location of segments, including manifests without
// sets.
const FormatVersion = 1

// SetsFormatVersion is the format version of a manifest with sets. Older programs without support for sets reject a
// manifest with this version, and keep the generation (published version) of segments that they have.
const SetsFormatVersion = 2

// RollbackReason begins the field Reason in the manifest of a generation (published version) that a rollback created.
const RollbackReason = "rollback to "

// MaxSegments is the maximum number of segments in a generation (published version). The code of a segment is one byte,
// and code 0 means no segment.
const MaxSegments = 255

// Manifest is the index of one generation (published version): it lists the bitmaps of all segments and sets, and is
// stored as generations/<generation>.json.
type Manifest struct {
	FormatVersion int       `json:"format_version"`
	Generation    string    `json:"generation"`
	CreatedAt     time.Time `json:"created_at"`
	ToolVersion   string    `json:"tool_version"`
	// Reason is the operator's reason for a forced publish, or a text about a rollback. In the manifests of all other
	// publishes, Reason is empty.
	Reason string `json:"reason,omitempty"`
	// IDs describes user ids that are not dense (32-bit integers). If IDs is nil, the ids are dense.
	IDs *IDs `json:"ids,omitempty"`
	// Segments lists the segments in the order of precedence: a user in the bitmaps of two segments belongs to the
	// earlier segment.
	Segments []Segment `json:"segments"`
	// Sets lists the sets in the order of the build; sets may overlap. A user in two time zone sets belongs to the
	// earlier of these sets.
	Sets []Set `json:"sets,omitempty"`
	// Accepted lists the operator's approvals of changes of single sets and segments, oldest first, for this generation
	// and earlier ones.
	Accepted []Accepted `json:"accepted,omitempty"`
}

// MaxSets is the maximum number of sets in a generation (published version).
const MaxSets = 4096

// Set is the manifest entry of one set of users.
type Set struct {
	Segment
	// If OnlyGrows is true, the guard rejects a build in which more than MaxLoss percent of the users leave the set;
	// see package publish.
	OnlyGrows bool `json:"only_grows,omitempty"`
	// MaxLoss is the percentage of users who may leave a set with OnlyGrows from one publish to the next. MaxLoss is
	// below 100; at 0, no user may leave.
	MaxLoss float64 `json:"max_loss,omitempty"`
	// AsOf is the time up to which the set's users reflect every change by API calls, in whole milliseconds of UTC. If
	// the time is unknown, AsOf is zero.
	AsOf time.Time `json:"as_of,omitzero"`
	// If the set contains the users of amends (publishes of some sets), AmendedAsOf is the AsOf of the newest of these
	// amends. If a build alone made the set, AmendedAsOf is zero. A build with an earlier AsOf keeps the users of the
	// amends; see package publish.
	AmendedAsOf time.Time `json:"amended_as_of,omitzero"`
}

// MaxManifestBytes is the maximum size of a manifest. MaxManifestBytes is larger than a manifest with MaxSegments
// segments and MaxSets sets of the longest names.
const MaxManifestBytes = 4 << 20

// Entries returns the manifest's descriptions of all bitmaps: the segments first, then the sets, in the order of the
// manifest.
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

// Segment is the manifest entry of one segment, or the common part of a set's entry. The fields Min and Max are the
// lowest and highest user number in the bitmap. If the bitmap is empty, Min and Max are absent.
type Segment struct {
	Name        string  `json:"name"`
	Key         string  `json:"key"`
	SHA256      string  `json:"sha256"`
	SizeBytes   int64   `json:"size_bytes"`
	Cardinality uint64  `json:"cardinality"`
	Min         *uint32 `json:"min,omitempty"`
	Max         *uint32 `json:"max,omitempty"`
}

// segmentRule matches valid segment names.
var segmentRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ReservedName stands for users who are in no segment, in API responses and metrics. No segment may have the name
// ReservedName.
const ReservedName = "default"

// CheckName returns an error if the argument is not a valid name of a segment.
func CheckName(name string) error {
	if name == ReservedName {
		return fmt.Errorf("segment name %q is reserved for users in no segment", name)
	}
	if !segmentRule.MatchString(name) {
		return fmt.Errorf(
			"segment name %q must be 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit", name)
	}
	return nil
}

var setRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9._+-]+)*$`)

// MaxSetName is the maximum length of a set's name in bytes.
const MaxSetName = 128

// ZonePrefix begins the names of time zone sets, for example tz/Asia/Singapore.
const ZonePrefix = "tz/"

// AllName selects every user, in expressions over segments and sets. No set may have the name AllName. A segment may
// have this name, but expressions that use the name then fail.
const AllName = "all"

// The function "dotted" reports whether an element of the name between slashes is "." or "..". Many clients and proxies
// rewrite paths with the elements "." and "..".
func dotted(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// CheckSetName returns an error if the argument is not a valid name of a set.
func CheckSetName(name string) error {
	switch {
	case name == ReservedName || name == AllName:
		return fmt.Errorf("set name %q is reserved in results and expressions", name)
	case len(name) > MaxSetName || !setRule.MatchString(name) || dotted(name):
		return fmt.Errorf(
			"set name %q must be 1 to %d letters, digits, '.', '_', '-', '+' or '/', "+
				"beginning with a letter or digit; the parts between slashes must not be empty, '.' or '..'",
			name, MaxSetName)
	case strings.HasPrefix(name, ZonePrefix):
		if _, err := Zone(name); err != nil {
			return err
		}
	}
	return nil
}

// Describe returns the manifest entry for a bitmap with the given name.
func Describe(name string, b *bitmap.Bitmap) Segment {
	sum := b.SHA256()
	s := Segment{Name: name, Key: BitmapKey(sum), SHA256: sum, SizeBytes: int64(len(b.Bytes())),
		Cardinality: b.Cardinality()}
	if lowest, highest, ok := b.Bounds(); ok {
		s.Min, s.Max = &lowest, &highest
	}
	return s
}

// NewManifest returns the manifest of a generation (published version), including the generation's name.
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

// The method "version" returns the lowest format version that has all fields of the manifest. Programs that do not
// support the required version reject the manifest instead of misreading it.
func (m *Manifest) version() int {
	switch {
	case m.IDs != nil:
		return IDsFormatVersion
	case slices.ContainsFunc(m.Sets, func(s Set) bool { return s.timed() }):
		return AsOfFormatVersion
	case len(m.Accepted) > 0:
		return AcceptedFormatVersion
	case len(m.Sets) > 0:
		return SetsFormatVersion
	}
	return FormatVersion
}

// The method "name" computes the generation's name from the fields of the manifest. The name of a generation (published
// version) begins with the creation time, so that names sort by time. The name of a generation ends with a hash of
// every field of the manifest. Different manifests therefore have different names, and no field can change unnoticed.
func (m *Manifest) name() string {
	rest := *m
	rest.Generation = ""
	return TimeName(m.CreatedAt) + "-" + Sum(rest.Encode())[:8]
}

// The method "sum" returns the SHA-256 of the encoded manifest. The pointer current.json also contains the SHA-256 of
// the manifest.
func (m *Manifest) sum() string { return Sum(m.Encode()) }

// Encode returns the manifest in the form in which a location stores it.
func (m *Manifest) Encode() []byte {
	raw, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("encode a manifest: %v", err)) // encoding these fields cannot fail
	}
	return append(raw, '\n')
}

// parseManifest decodes the manifest of a generation (published version) and checks everything except the bitmaps.
// parseManifest rejects bytes that differ from those that Encode writes for the manifest with the given name.
func parseManifest(generation string, raw []byte) (*Manifest, error) {
	var m Manifest
	if err := decodeDocument(raw, &m, newestFormatVersion); err != nil {
		return nil, fmt.Errorf("manifest of generation %s: %w", generation, err)
	}
	if m.Generation != generation {
		return nil, fmt.Errorf("manifest of generation (published version) %s names another generation, %q",
			generation, m.Generation)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("manifest of generation %s: %w", generation, err)
	}
	if is := m.name(); is != generation {
		return nil, fmt.Errorf(
			"manifest of generation (published version) %s is damaged: its content must have the name %s",
			generation, is)
	}
	if !bytes.Equal(raw, m.Encode()) {
		return nil, fmt.Errorf(
			"manifest of generation (published version) %s is damaged: "+
				"its fields have the published values, but the bytes of the file differ",
			generation)
	}
	return &m, nil
}

func (m *Manifest) check() error {
	if len(m.Segments) == 0 {
		return errors.New("manifest has no segments")
	}
	if len(m.Segments) > MaxSegments {
		return fmt.Errorf("manifest has %d segments, but must have at most %d", len(m.Segments), MaxSegments)
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
	if err := m.checkIDs(); err != nil {
		return err
	}
	return m.checkAccepted()
}

func (m *Manifest) checkSets(seen map[string]bool) error {
	switch {
	case len(m.Sets) > MaxSets:
		return fmt.Errorf("manifest has %d sets, but must have at most %d", len(m.Sets), MaxSets)
	case m.FormatVersion != m.version():
		with := fmt.Sprintf("%d sets", len(m.Sets))
		if n := len(m.Accepted); n > 0 {
			with += fmt.Sprintf(" and %d acceptances", n)
		}
		switch m.version() {
		case AsOfFormatVersion:
			with += ", some with as_of,"
		case IDsFormatVersion:
			with += ", and ids of the kind " + m.IDs.Kind + ","
		}
		return fmt.Errorf("format_version is %d, but a manifest with %s must have format_version %d",
			m.FormatVersion, with, m.version())
	}
	for i, s := range m.Sets {
		err := CheckSetName(s.Name)
		if err == nil {
			err = s.check()
		}
		if err == nil {
			err = s.checkAsOf(m.CreatedAt)
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
		return fmt.Errorf(
			"max_loss must be 0 for a set without 'only_grows', and otherwise at least 0 and below 100, got %v",
			s.MaxLoss)
	}
	return s.checkBitmap()
}

func (s *Segment) checkBitmap() error {
	switch {
	case !sha256Rule.MatchString(s.SHA256):
		return fmt.Errorf("sha256 %q: must be 64 lower-case hex digits", s.SHA256)
	case s.Key != BitmapKey(s.SHA256):
		return fmt.Errorf("key %q: must be %q, the object key of the file with this sha256", s.Key, BitmapKey(s.SHA256))
	case s.SizeBytes < 8 || s.SizeBytes > bitmap.MaxBytes:
		return fmt.Errorf("size_bytes %d: must be from 8 to %d", s.SizeBytes, bitmap.MaxBytes)
	case (s.Min == nil) != (s.Cardinality == 0), (s.Max == nil) != (s.Cardinality == 0):
		return fmt.Errorf("'min' and 'max' must be set if 'cardinality' (%d) is above 0, and absent otherwise",
			s.Cardinality)
	}
	return nil
}

// The method "open" checks the bytes of a bitmap file against its manifest entry: size, hash, format, cardinality and
// bounds. The method "open" returns the decoded bitmap.
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

// The method "agree" checks that the size, cardinality and bounds of a bitmap equal those in the manifest entry. The
// caller of the method "agree" has already checked the bitmap's hash.
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

// The method "same" reports whether two manifest entries describe equal bitmaps, even if the names differ.
func (s *Segment) same(other *Segment) bool {
	return s.SHA256 == other.SHA256 && s.SizeBytes == other.SizeBytes && s.Cardinality == other.Cardinality &&
		equal(s.Min, other.Min) && equal(s.Max, other.Max)
}

func equal(a, b *uint32) bool { return a == b || a != nil && b != nil && *a == *b }
