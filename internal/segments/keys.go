package segments

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The constants CurrentKey to dictionarySuffix are keys of the objects at a location of segments, or prefixes and
// suffixes of such keys. The file doc.go describes the objects at a location.
const (
	CurrentKey        = "current.json"
	CheckedKey        = "checked.json"
	ControlsKey       = "controls.json"
	BitmapsPrefix     = "bitmaps/"
	bitmapSuffix      = ".roaring"
	GenerationsPrefix = "generations/"
	generationSuffix  = ".json"
	// DictionariesPrefix begins the object keys of dictionaries and BackFiles (files with the user ids) at locations
	// whose user ids are not dense (32-bit integers).
	DictionariesPrefix = "dictionaries/"
	dictionarySuffix   = ".dictionary"
)

var (
	generationRule = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}\.[0-9]{3}Z-[0-9a-f]{8}$`)
	sha256Rule     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// BitmapKey returns the object key of the bitmap with the given SHA-256.
func BitmapKey(sha256 string) string { return BitmapsPrefix + sha256 + bitmapSuffix }

// IsBitmapKey reports whether a key has the form of a bitmap's object key.
func IsBitmapKey(key string) bool {
	sum := strings.TrimSuffix(strings.TrimPrefix(key, BitmapsPrefix), bitmapSuffix)
	return sha256Rule.MatchString(sum) && BitmapKey(sum) == key
}

// DictionaryKey returns the object key of the dictionary with the given SHA-256.
func DictionaryKey(sha256 string) string { return DictionariesPrefix + sha256 + dictionarySuffix }

// IsDictionaryKey reports whether an object key has the form of the key of a dictionary.
func IsDictionaryKey(key string) bool {
	sum := strings.TrimSuffix(strings.TrimPrefix(key, DictionariesPrefix), dictionarySuffix)
	return sha256Rule.MatchString(sum) && DictionaryKey(sum) == key
}

// ManifestKey returns the object key of a generation's manifest.
func ManifestKey(generation string) string { return GenerationsPrefix + generation + generationSuffix }

// GenerationOf returns the name of the generation (published version) whose manifest has the given object key. If the
// key is not the key of a manifest, the result "ok" is false.
func GenerationOf(key string) (generation string, ok bool) {
	generation = strings.TrimSuffix(strings.TrimPrefix(key, GenerationsPrefix), generationSuffix)
	return generation, IsGeneration(generation) && ManifestKey(generation) == key
}

// IsGeneration reports whether a text has the form of a generation's name, such as 20261120T101500.000Z-0a1b2c3d.
func IsGeneration(name string) bool { return generationRule.MatchString(name) }

// TimeName returns the beginning of the name of a generation (published version) that is created at the given time.
func TimeName(at time.Time) string { return at.UTC().Format("20060102T150405.000Z") }

// sumPart is the number of bytes that Sum passes to the SHA-256 code in one call. The Go runtime cannot interrupt one
// call of the SHA-256 code. A larger sumPart would therefore lengthen the pauses of the garbage collector.
const sumPart = 64 << 10

// Sum returns the SHA-256 of raw in lower-case hex. Documents and object keys contain hashes in lower-case hex.
func Sum(raw []byte) string {
	hash := sha256.New()
	for part := range slices.Chunk(raw, sumPart) {
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// The method Content returns a hash of a generation's content: the kind of the ids, the dictionary, and the names,
// order and users of all segments and sets. The content hash does not depend on the generation's creation time.
func (m *Manifest) Content() string {
	if m.IDs == nil {
		return Content(m.Segments, m.Sets...)
	}
	return Sum([]byte("ids " + m.numbering() + "\n" + Content(m.Segments, m.Sets...)))
}

// The function Content returns a hash of the names, the order and the bitmaps of a generation's segments and sets. The
// content hash does not depend on the generation's creation time.
func Content(list []Segment, sets ...Set) string {
	var text strings.Builder
	for _, s := range list {
		fmt.Fprintf(&text, "%s %s\n", s.Name, s.SHA256)
	}
	for _, s := range sets {
		fmt.Fprintf(&text, "set %s %s\n", s.Name, s.SHA256)
	}
	return Sum([]byte(text.String()))
}
