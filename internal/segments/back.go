package segments

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"capper/internal/capping"
	"capper/internal/dictionary"
	"capper/internal/ids"
	"capper/internal/objects"
)

// BackFile describes the optional file with which capper converts the numbers of users in bitmaps back to user ids. For
// UUIDs, a BackFile contains the 64 bits that the image (64-bit number that stands for the id) lacks; for text ids, it
// contains the texts. Ids of the kind uint64 need no BackFile, because capper can compute a uint64 id from its image.
type BackFile struct {
	Key       string `json:"key"`
	SHA256    string `json:"sha256"`
	SizeBytes int64  `json:"size_bytes"`
}

// restsSuffix ends the object keys of BackFiles (files with the user ids) for UUIDs, and textsSuffix for text ids.
const (
	restsSuffix = ".rests"
	textsSuffix = ".texts"
)

// BackKey returns the object key of the BackFile (file with the user ids) with the given SHA-256, for user ids of the
// given kind.
func BackKey(kind ids.Kind, sha256 string) string {
	if kind == ids.Text {
		return DictionariesPrefix + sha256 + textsSuffix
	}
	return DictionariesPrefix + sha256 + restsSuffix
}

// IsBackKey reports whether a key has the form of a BackFile's object key.
func IsBackKey(key string) bool {
	for _, suffix := range []string{restsSuffix, textsSuffix} {
		sum, ok := strings.CutSuffix(strings.TrimPrefix(key, DictionariesPrefix), suffix)
		if ok && sha256Rule.MatchString(sum) && DictionariesPrefix+sum+suffix == key {
			return true
		}
	}
	return false
}

// The method "check" returns an error if the manifest's description of the BackFile (file with the user ids) is invalid
// for ids of the given kind.
func (f *BackFile) check(kind ids.Kind) error {
	switch {
	case kind == ids.Uint64:
		return errors.New("must be absent, because user ids of the kind 'uint64' need no file")
	case !sha256Rule.MatchString(f.SHA256):
		return fmt.Errorf("sha256 %q: must be 64 lower-case hex digits", f.SHA256)
	case f.Key != BackKey(kind, f.SHA256):
		return fmt.Errorf("key %q: must be %q, the object key of the file with this sha256",
			f.Key, BackKey(kind, f.SHA256))
	case f.SizeBytes < 1 || f.SizeBytes > MaxDictionaryBytes*32:
		return fmt.Errorf("size_bytes %d: must be from 1 to %d", f.SizeBytes, int64(MaxDictionaryBytes*32))
	}
	return nil
}

// Back converts the numbers of users in bitmaps to user ids, with the checked content of a BackFile (file with the user
// ids). A Back (conversion of user numbers to ids) may use the memory of a mapped file. The file stays mapped while the
// Back is reachable.
type Back struct {
	raw    []byte
	sha256 string
	mapped bool
	rests  *dictionary.Rests // for ids of the kind uuid
	texts  *dictionary.Texts // for ids of the kind text
}

// NewBack checks the content of a BackFile (file with the user ids) for ids of the given kind, and returns a Back that
// uses this content. The caller of NewBack must not change the slice raw afterwards.
func NewBack(kind ids.Kind, raw []byte) (*Back, error) { return openBack(kind, raw, Sum(raw)) }

func openBack(kind ids.Kind, raw []byte, sha256 string) (b *Back, err error) {
	b = &Back{raw: raw, sha256: sha256}
	if kind == ids.Text {
		b.texts, err = dictionary.OpenTexts(raw)
	} else {
		b.rests, err = dictionary.OpenRests(raw)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Bytes returns the content of the BackFile (file with the user ids). The caller of Bytes must not change the slice.
func (b *Back) Bytes() []byte { return b.raw }

// Len returns the number of ids in the BackFile (file with the user ids).
func (b *Back) Len() uint32 {
	if b.texts != nil {
		return b.texts.Len()
	}
	return b.rests.Len()
}

// The method "at" returns the data for converting a user's number to the id. For a UUID, the result "rest" is the 64
// bits that the image (64-bit number that stands for the id) lacks. For a text id, the result "text" is the id.
func (b *Back) at(number uint32) (rest uint64, text []byte) {
	if b.texts != nil {
		return 0, b.texts.Text(number)
	}
	return b.rests.Rest(number), nil
}

// The method "describe" returns the description of the BackFile (file with the user ids) for a manifest, or nil for a
// nil Back.
func (b *Back) describe(kind ids.Kind) *BackFile {
	if b == nil {
		return nil
	}
	return &BackFile{Key: BackKey(kind, b.sha256), SHA256: b.sha256, SizeBytes: int64(len(b.raw))}
}

// The method "open" checks the bytes of a BackFile (file with the user ids) against the manifest, and returns a Back
// that uses these bytes.
func (f *BackFile) open(m *Manifest, raw []byte) (*Back, error) {
	if int64(len(raw)) != f.SizeBytes {
		return nil, fmt.Errorf("file of ids has %d bytes, but the manifest says %d", len(raw), f.SizeBytes)
	}
	if got := Sum(raw); got != f.SHA256 {
		return nil, fmt.Errorf("checksum mismatch: sha256 is %s, but the manifest says %s", got, f.SHA256)
	}
	kind, err := ids.ParseKind(m.IDs.Kind)
	if err != nil {
		return nil, err
	}
	b, err := openBack(kind, raw, f.SHA256)
	if err == nil && b.Len() != m.IDs.Count {
		err = fmt.Errorf("file of ids has %d ids, but the manifest says %d", b.Len(), m.IDs.Count)
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// The method "back" returns the manifest's description of the BackFile (file with the user ids), or nil if the
// generation (published version) has no BackFile.
func (m *Manifest) back() *BackFile {
	if m.IDs == nil {
		return nil
	}
	return m.IDs.Dictionary[0].Back
}

// ReadBack reads and checks the BackFile (file with the user ids) that the manifest names. If the manifest names no
// BackFile, ReadBack returns nil.
func (m *Manifest) ReadBack(ctx context.Context, src objects.Source) (*Back, error) {
	f := m.back()
	if f == nil {
		return nil, nil
	}
	raw, err := src.Read(ctx, f.Key, f.SizeBytes)
	if err == nil {
		var b *Back
		if b, err = f.open(m, raw); err == nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("way back to ids: %w", err)
}

// readBackOver works like ReadBack. If the generation "known" (published version) already has the BackFile (file with
// the user ids) in memory, readBackOver does not read the file. The argument "known" of readBackOver may be nil.
func (m *Manifest) readBackOver(ctx context.Context, src objects.Source, known *Generation) (*Back, error) {
	if f := m.back(); f != nil && known != nil && known.Back != nil && known.Back.sha256 == f.SHA256 {
		return known.Back, nil
	}
	return m.ReadBack(ctx, src)
}

// readBack reads the BackFile (file with the user ids) of the generation (published version), or takes it from the
// generation "known", and sets the field Back.
func (g *Generation) readBack(ctx context.Context, src objects.Source, known *Generation) (err error) {
	if g.Back, err = g.Manifest.readBackOver(ctx, src, known); err != nil {
		return fmt.Errorf("generation %s: %w", g.Manifest.Generation, err)
	}
	return nil
}

// The method "names" returns the generation's Back, which converts user numbers to ids. If necessary, the method first
// reads the BackFile (file with the user ids). If the generation (published version) has no BackFile, the method
// returns nil.
func (g *Generation) names() (*Back, error) {
	if g.Back == nil && g.lazyBack != nil {
		return g.lazyBack()
	}
	return g.Back, nil
}

// ErrNoNames reports that a generation (published version) cannot convert user numbers to user ids, because its build
// had the flag --no-names.
var ErrNoNames = errors.New(
	"the generation (published version) does not contain the original user ids: it was built with --no-names")

// HasNames reports whether the snapshot can convert user numbers to user ids (see Snapshot.Back).
func (s *Snapshot) HasNames() bool {
	return s.scheme == nil || s.scheme.Kind() == ids.Uint64 || s.back != nil
}

// The method Back appends the canonical user id for the given user number. The number must be in a bitmap of the
// snapshot, so that Back knows the id. The only possible error of Back is ErrNoNames.
func (s *Snapshot) Back(dst []byte, number uint32) ([]byte, error) {
	dst, err := (&Generation{Scheme: s.scheme, Dictionary: s.dictionary, Back: s.back}).ID(dst, number)
	runtime.KeepAlive(s)
	return dst, err
}

// Name appends the canonical text of a user's id. If the snapshot does not contain the id, Name appends "image:" and
// the 16 hexadecimal digits of the id's image (64-bit number that stands for the id).
func (s *Snapshot) Name(dst []byte, user capping.UserID) []byte {
	dst = (&Generation{Scheme: s.scheme, Dictionary: s.dictionary, Back: s.back}).Name(dst, user)
	runtime.KeepAlive(s)
	return dst
}

// Name appends the canonical text of a user's id, like Snapshot.Name.
func (g *Generation) Name(dst []byte, user capping.UserID) []byte {
	switch {
	case g.Scheme == nil:
		return strconv.AppendUint(dst, uint64(user), 10)
	case g.Scheme.Kind() == ids.Uint64:
		dst, _ = g.Scheme.Back(dst, uint64(user), 0) // never fails for this kind
		return dst
	}
	var number [1]uint32
	g.Dictionary.users([]capping.UserID{user}, number[:])
	if number[0] != math.MaxUint32 {
		if named, err := g.ID(dst, number[0]); err == nil {
			return named
		}
	}
	return fmt.Appendf(dst, "image:%016x", uint64(user))
}

// The method ID converts a user number to an id, like Snapshot.Back.
func (g *Generation) ID(dst []byte, number uint32) ([]byte, error) {
	switch {
	case g.Scheme == nil:
		return denseIDs.Back(dst, uint64(number), 0)
	case g.Scheme.Kind() == ids.Uint64:
		return g.Scheme.Back(dst, g.Dictionary.Image(number), 0)
	}
	switch back, err := g.names(); {
	case err != nil:
		return dst, err
	case back == nil:
		return dst, ErrNoNames
	case back.texts != nil:
		return append(dst, back.texts.Text(number)...), nil
	default:
		return g.Scheme.Back(dst, g.Dictionary.Image(number), back.rests.Rest(number))
	}
}

// BackPacked converts the given user numbers to ids, and appends the ids to dst in packed form (binary form). The
// numbers must come from bitmaps of the snapshot. The kind of the ids must have a packed form. BackPacked is fastest
// for ascending numbers. The only error of BackPacked is ErrNoNames: the snapshot cannot convert numbers to ids.
func (s *Snapshot) BackPacked(dst []byte, numbers []uint32) ([]byte, error) {
	if !s.HasNames() {
		return dst, ErrNoNames
	}
	defer runtime.KeepAlive(s) // keeps the files mapped
	p, rest := s.scheme.NewParser(), uint64(0)
	images := make([]uint64, 0, min(len(numbers), 1024))
	for block := range slices.Chunk(numbers, 1024) {
		images = dictionary.AppendImages(images[:0], s.dictionary.Dictionary, block)
		for i, number := range block {
			if s.back != nil {
				rest = s.back.rests.Rest(number)
			}
			var err error
			if dst, err = p.BackPacked(dst, images[i], rest); err != nil {
				return dst, err
			}
		}
	}
	return dst, nil
}

// TextBytes returns the total length of the text ids of users with the given numbers. The numbers must come from
// bitmaps of the snapshot, and the snapshot's method HasNames must return true.
func (s *Snapshot) TextBytes(numbers []uint32) (total int64) {
	defer runtime.KeepAlive(s)
	texts := s.back.texts.Reader()
	for _, number := range numbers {
		total += int64(len(texts.Text(number)))
	}
	return total
}

// BackTexts converts the given user numbers to text ids, and appends these ids to dst. BackTexts appends the end index
// of each id to the slice "ends". The user numbers must come from bitmaps of the snapshot, and the snapshot's method
// HasNames must return true.
func (s *Snapshot) BackTexts(dst []byte, ends, numbers []uint32) (texts []byte, extended []uint32) {
	defer runtime.KeepAlive(s)
	reader := s.back.texts.Reader()
	for _, number := range numbers {
		dst = append(dst, reader.Text(number)...)
		ends = append(ends, uint32(len(dst)))
	}
	return dst, ends
}
