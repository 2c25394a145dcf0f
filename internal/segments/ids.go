package segments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"

	"capper/internal/capping"
	"capper/internal/dictionary"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/parallel"
)

// IDsFormatVersion is the format version of a manifest whose user ids are not dense 32-bit integers. Older programs
// reject a manifest with this version, and keep the generation (published version) of segments that they have.
const IDsFormatVersion = 5

// IDsKey is the object key of ids.json, which holds the kind and the hash key of the user ids at a location. A location
// with dense ids (32-bit integers) has no ids.json.
const IDsKey = ids.FileName

// IDs describes the user ids of a generation (published version) if they are not dense 32-bit integers. Each user id
// has an image, a 64-bit number. The dictionary is the sorted list of all images. In the bitmaps, a user's number is
// the index of the user's image in the dictionary.
type IDs struct {
	Kind string `json:"kind"`
	// Check is the checksum ids.Scheme.Check of the kind and the hash key in ids.json.
	Check string `json:"check"`
	// Count is the number of ids in all layers (files) of the dictionary.
	Count uint32 `json:"count"`
	// Dictionary lists the layers (files) of the dictionary. The program supports only one layer so far.
	Dictionary []Layer `json:"dictionary"`
}

// A Layer describes one file of a dictionary of ids in the manifest.
type Layer struct {
	Key       string `json:"key"`
	SHA256    string `json:"sha256"`
	SizeBytes int64  `json:"size_bytes"`
	Count     uint32 `json:"count"`
	// Back describes the file that converts user numbers to ids. If the generation has no such file, Back is nil.
	Back *BackFile `json:"back,omitempty"`
}

// MaxDictionaryBytes is the maximum size of a dictionary file. Even a dictionary with the largest possible number of
// ids is smaller than MaxDictionaryBytes.
const MaxDictionaryBytes = 40 << 30

var checkRule = regexp.MustCompile(`^[0-9a-f]{8}$`)

// The method "numbering" returns a fingerprint of the mapping from users to their numbers in the bitmaps of the
// generation (published version). In generations with equal fingerprints, each user has the same number. For dense ids
// (32-bit integers), the fingerprint is "".
func (m *Manifest) numbering() string {
	if m.IDs == nil {
		return ""
	}
	return m.IDs.Kind + " " + m.IDs.Check + " " + m.IDs.Dictionary[0].SHA256
}

// Objects returns the keys and sizes of two objects to which the manifest refers: the dictionary and the BackFile (file
// with the user ids). Objects does not list the bitmaps.
func (m *Manifest) Objects() (list []objects.Object) {
	if m.IDs == nil {
		return nil
	}
	for _, layer := range m.IDs.Dictionary {
		list = append(list, objects.Object{Key: layer.Key, SizeBytes: layer.SizeBytes})
		if layer.Back != nil {
			list = append(list, objects.Object{Key: layer.Back.Key, SizeBytes: layer.Back.SizeBytes})
		}
	}
	return list
}

// SameNumbers reports whether each user has the same number in the bitmaps of both generations (published versions).
func (m *Manifest) SameNumbers(other *Manifest) bool { return m.numbering() == other.numbering() }

// Users returns 64 hex digits that identify the users of a segment or set of the manifest. If Users returns equal
// digits for two segments or sets, both have the same users. For dense ids, the result is the SHA-256 of the bitmap;
// for other ids, the result also depends on the dictionary of the generation (published version).
func (m *Manifest) Users(s *Segment) string {
	if m.IDs == nil {
		return s.SHA256
	}
	return Sum([]byte(m.numbering() + " " + s.SHA256))
}

// WithIDs returns a copy of the manifest for bitmaps whose user numbers come from the given dictionary. The copy has a
// new generation name.
func (m *Manifest) WithIDs(scheme *ids.Scheme, d *Dictionary, back *Back) (*Manifest, error) {
	return m.Numbered(DescribeIDs(scheme, d, back))
}

// The method Numbered works like WithIDs, but gets the description of a dictionary instead of the dictionary itself.
func (m *Manifest) Numbered(is *IDs) (*Manifest, error) {
	with := *m
	with.IDs = is
	with.FormatVersion = with.version()
	with.Generation = with.name()
	return &with, with.check()
}

// DescribeIDs returns the description of user ids for the field IDs of a manifest: the kind, the dictionary and the
// Back (conversion of user numbers to ids). The argument "back" of DescribeIDs may be nil.
func DescribeIDs(scheme *ids.Scheme, d *Dictionary, back *Back) *IDs {
	layer := Layer{Key: DictionaryKey(d.sha256), SHA256: d.sha256, SizeBytes: int64(len(d.raw)), Count: d.Len(),
		Back: back.describe(scheme.Kind())}
	return &IDs{Kind: scheme.Kind().String(), Check: scheme.Check(), Count: d.Len(), Dictionary: []Layer{layer}}
}

func (m *Manifest) checkIDs() error {
	if m.IDs == nil {
		return nil
	}
	if err := m.IDs.check(); err != nil {
		return fmt.Errorf("ids: %w", err)
	}
	for _, s := range m.Entries() {
		if s.Max != nil && *s.Max >= m.IDs.Count {
			return fmt.Errorf("segment or set %q: "+
				"the largest user number (max) is %d, but must be below the number of ids %d",
				s.Name, *s.Max, m.IDs.Count)
		}
	}
	return nil
}

func (d *IDs) check() error {
	kind, err := ids.ParseKind(d.Kind)
	switch {
	case err != nil:
		return fmt.Errorf("kind: %w", err)
	case kind == ids.Dense:
		return errors.New("kind: must be absent for dense ids (32-bit integers)")
	case !checkRule.MatchString(d.Check):
		return fmt.Errorf(
			"the field 'check', the fingerprint of the hash key, must be 8 lower-case hex digits, got %q", d.Check)
	case len(d.Dictionary) != 1:
		return fmt.Errorf("dictionary: must be a list of exactly one file, got %d", len(d.Dictionary))
	}
	layer := &d.Dictionary[0]
	switch {
	case !sha256Rule.MatchString(layer.SHA256):
		return fmt.Errorf("dictionary[0]: sha256 %q: must be 64 lower-case hex digits", layer.SHA256)
	case layer.Key != DictionaryKey(layer.SHA256):
		return fmt.Errorf("dictionary[0]: key %q: must be %q, the object key of the file with this sha256",
			layer.Key, DictionaryKey(layer.SHA256))
	case layer.SizeBytes < 1 || layer.SizeBytes > MaxDictionaryBytes:
		return fmt.Errorf("dictionary[0]: size_bytes %d: must be from 1 to %d", layer.SizeBytes,
			int64(MaxDictionaryBytes))
	case layer.Count != d.Count || d.Count == dictionary.Unknown:
		return fmt.Errorf("dictionary[0]: count is %d, but must equal the count of all ids (%d) and be below %d",
			layer.Count, d.Count, uint32(dictionary.Unknown))
	}
	if layer.Back != nil {
		if err := layer.Back.check(kind); err != nil {
			return fmt.Errorf("dictionary[0]: back: %w", err)
		}
	}
	return nil
}

// Dictionary is the checked dictionary of one generation (published version), which maps ids to user numbers. A
// Dictionary may use the memory of a mapped file. The file stays mapped while the Dictionary is reachable.
type Dictionary struct {
	*dictionary.Dictionary
	raw    []byte
	sha256 string
	mapped bool
}

// NewDictionary checks all bytes of a dictionary file and returns a Dictionary that uses these bytes. The caller of
// NewDictionary must not change the slice raw afterwards.
func NewDictionary(raw []byte) (*Dictionary, error) { return openDictionary(raw, Sum(raw)) }

func openDictionary(raw []byte, sha256 string) (*Dictionary, error) {
	d, err := dictionary.Open(raw)
	if err != nil {
		return nil, err
	}
	return &Dictionary{Dictionary: d, raw: raw, sha256: sha256}, nil
}

// Bytes returns the content of the dictionary file. The caller of Bytes must not change the slice.
func (d *Dictionary) Bytes() []byte { return d.raw }

// SHA256 returns the SHA-256 of the dictionary file in hex.
func (d *Dictionary) SHA256() string { return d.sha256 }

// SizeBytes returns the size of the dictionary of ids in memory, in bytes. If the dictionary is a mapped file, its
// memory belongs to the page cache.
func (d *Dictionary) SizeBytes() int64 { return int64(len(d.raw)) }

// The method "open" checks the bytes of a dictionary file against the manifest and returns the dictionary.
func (l *Layer) open(raw []byte) (*Dictionary, error) {
	if int64(len(raw)) != l.SizeBytes {
		return nil, fmt.Errorf("dictionary of user ids has %d bytes, but the manifest says %d", len(raw), l.SizeBytes)
	}
	if got := Sum(raw); got != l.SHA256 {
		return nil, fmt.Errorf("checksum mismatch: sha256 is %s, but the manifest says %s", got, l.SHA256)
	}
	d, err := openDictionary(raw, l.SHA256)
	if err == nil && d.Len() != l.Count {
		err = fmt.Errorf("dictionary of user ids has %d ids, but the manifest says %d", d.Len(), l.Count)
	}
	if err != nil {
		return nil, err
	}
	return d, nil
}

// readDictionary reads and checks the dictionary file that the manifest names.
func (m *Manifest) readDictionary(ctx context.Context, src objects.Source) (*Dictionary, error) {
	layer := &m.IDs.Dictionary[0]
	raw, err := src.Read(ctx, layer.Key, layer.SizeBytes)
	if err != nil {
		return nil, fmt.Errorf("dictionary: %w", err)
	}
	d, err := layer.open(raw)
	if err != nil {
		return nil, fmt.Errorf("dictionary: %w", err)
	}
	return d, nil
}

// ReadIDs reads and checks ids.json, and the dictionary and BackFile (file with the user ids) that the manifest names.
// The ids must not be dense (32-bit integers). The returned generation (published version) has no bitmaps.
func (m *Manifest) ReadIDs(ctx context.Context, src objects.Source) (*Generation, error) {
	g := &Generation{Manifest: m}
	err := g.readNumbers(ctx, src, nil)
	if err == nil {
		err = g.readBack(ctx, src, nil)
	}
	return g, err
}

// readNumbers reads and checks ids.json and the dictionary of a generation (published version). If the dictionary in
// the argument "known" is the wanted one, readNumbers does not read the file.
func (g *Generation) readNumbers(ctx context.Context, src objects.Source, known *Dictionary) (err error) {
	if g.Manifest.IDs == nil {
		return nil
	}
	if g.Scheme, err = ReadScheme(ctx, src, g.Manifest); err != nil {
		return err
	}
	if g.Dictionary = known; known == nil || known.sha256 != g.Manifest.IDs.Dictionary[0].SHA256 {
		if g.Dictionary, err = g.Manifest.readDictionary(ctx, src); err != nil {
			return fmt.Errorf("generation %s: %w", g.Manifest.Generation, err)
		}
	}
	return nil
}

// readFiles reads the dictionary and the BackFile (file with the user ids) of a generation (published version). The
// argument "atOnce" of readFiles is the maximum number of concurrent reads.
func (g *Generation) readFiles(atOnce int, dictionary func() (*Dictionary, error), back func() (*Back, error)) error {
	var errs [2]error
	parallel.AtMost(atOnce, 2, func(i int) {
		if i == 0 {
			g.Dictionary, errs[i] = dictionary()
		} else {
			g.Back, errs[i] = back()
		}
	})
	if err := cmp.Or(errs[:]...); err != nil {
		return fmt.Errorf("generation %s: %w", g.Manifest.Generation, err)
	}
	return nil
}

// IDsError reports that two components, such as a location of segments and a service, have user ids of different kinds
// or hash keys.
type IDsError struct{ text string }

func (e *IDsError) Error() string { return e.text }

// IDsErrorf returns an *IDsError.
func IDsErrorf(format string, args ...any) error { return &IDsError{fmt.Sprintf(format, args...)} }

// ReadIDsFile reads the object ids.json of a location. The result "ok" of ReadIDsFile is false if the location has no
// ids.json, which means that its user ids are dense.
func ReadIDsFile(ctx context.Context, src objects.Source) (f ids.File, ok bool, err error) {
	raw, _, err := src.ReadTagged(ctx, IDsKey, "")
	switch {
	case errors.Is(err, objects.ErrNotFound):
		return f, false, nil
	case err != nil:
		return f, false, fmt.Errorf("%s: %w", IDsKey, err)
	}
	if f, err = ids.ParseFile(raw); err != nil {
		return f, false, IDsErrorf("%s: %v", IDsKey, err)
	}
	return f, true, nil
}

// ReadScheme reads the object ids.json of a location, and checks that it agrees with the manifest. The result of
// ReadScheme is nil for dense ids (32-bit integers). If ids.json does not belong to the manifest, the error is an
// *IDsError. If ids are dense, ReadScheme treats a denied read like a missing ids.json. If a caller has no permission
// to list the bucket, S3 answers the read of a missing object with "access denied". A caller with dense ids needs no
// ids.json.
func ReadScheme(ctx context.Context, src objects.Source, m *Manifest) (*ids.Scheme, error) {
	f, ok, err := ReadIDsFile(ctx, src)
	switch {
	case err != nil && (m.IDs != nil || !objects.IsDenied(err)):
		return nil, err
	case !ok:
		return nil, m.agreesWith(nil)
	}
	s := f.Scheme()
	return s, m.agreesWith(s)
}

// agreesWith returns an *IDsError if the manifest is for ids of another kind or hash key than ids.json (argument "s").
// If the location has no ids.json, the argument "s" is nil.
func (m *Manifest) agreesWith(s *ids.Scheme) error {
	switch {
	case m.IDs == nil && s == nil:
	case s == nil:
		return IDsErrorf(
			"generation (published version) %s has ids of the kind %s, but file %s with the hash key is missing: "+
				"restore the file from a backup or a service's cache, because ids hashed with a new key match no user",
			m.Generation, m.IDs.Kind, IDsKey)
	case m.IDs == nil:
		return IDsErrorf(
			"generation (published version) %s has dense ids (32-bit integers), but file %s names the kind %s",
			m.Generation, IDsKey, s.Kind())
	case m.IDs.Kind != s.Kind().String():
		return IDsErrorf("generation (published version) %s has ids of the kind %s, but file %s names the kind %s",
			m.Generation, m.IDs.Kind, IDsKey,
			s.Kind())
	case m.IDs.Check != s.Check():
		return IDsErrorf(
			"generation (published version) %s has another key for hashing ids than the file %s: "+
				"the key's fingerprint is %s instead of %s",
			m.Generation, IDsKey, m.IDs.Check, s.Check())
	}
	return nil
}

// agreesWithUse returns an *IDsError if the manifest has another kind or hash key of ids than the generation (published
// version) in use.
func (m *Manifest) agreesWithUse(now *Snapshot) error {
	kind, check := ids.Dense.String(), ""
	if m.IDs != nil {
		kind, check = m.IDs.Kind, m.IDs.Check
	}
	switch is := now.IDs(); {
	case kind != is.Kind().String():
		return IDsErrorf(
			"generation (published version) %s has ids of the kind %s, "+
				"but generation %s, which is in use, has ids of the kind %s",
			m.Generation,
			kind, now.Generation(), is.Kind())
	case check != is.Check():
		return IDsErrorf(
			"generation (published version) %s has another key for hashing ids than generation %s, which is in use: "+
				"the key's fingerprint is %s instead of %s", m.Generation, now.Generation(), check, is.Check())
	}
	return nil
}

// denseIDs is the scheme (kind and hash key) of dense ids (32-bit integers).
var denseIDs = ids.New(ids.Dense, ids.Key{})

// IDs returns the scheme (kind and hash key) of the generation's ids. The result of IDs is never nil.
func (s *Snapshot) IDs() *ids.Scheme {
	if s.scheme == nil {
		return denseIDs
	}
	return s.scheme
}

// KnownIDs returns the number of ids in the dictionary, or 0 for dense ids (32-bit integers), which need no dictionary.
func (s *Snapshot) KnownIDs() int {
	if s.dictionary == nil {
		return 0
	}
	return int(s.dictionary.Len())
}

// Numbers sets numbers[i] to the number that stands for users[i] in the bitmaps of the snapshot. If the dictionary
// lacks a user, Numbers sets the user's element of the slice numbers to 2^32-1. The number of a dense id (32-bit
// integer) is the id itself. Numbers does not allocate memory.
func (s *Snapshot) Numbers(users []capping.UserID, numbers []uint32) {
	s.dictionary.users(users, numbers)
}

// The method "users" sets numbers[i] to the number of users[i], like Snapshot.Numbers; a nil Dictionary means that ids
// are dense.
func (d *Dictionary) users(users []capping.UserID, numbers []uint32) {
	if d == nil {
		capping.DenseIDs{}.Numbers(users, numbers)
		return
	}
	numbers = numbers[:len(users)]
	var images [256]uint64
	for len(users) > 0 {
		n := min(len(images), len(users))
		for i, user := range users[:n] {
			images[i] = uint64(user)
		}
		d.Numbers(images[:n], numbers[:n])
		users, numbers = users[n:], numbers[n:]
	}
	runtime.KeepAlive(d) // keeps the file mapped
}
