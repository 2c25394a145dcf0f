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

// The objects of a location; see doc.go.
const (
	CurrentKey        = "current.json"
	CheckedKey        = "checked.json"
	ControlsKey       = "controls.json"
	BitmapsPrefix     = "bitmaps/"
	bitmapSuffix      = ".roaring"
	GenerationsPrefix = "generations/"
	generationSuffix  = ".json"
)

var (
	generationRule = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}\.[0-9]{3}Z-[0-9a-f]{8}$`)
	sha256Rule     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// BitmapKey is the key of the bitmap with a SHA-256.
func BitmapKey(sha256 string) string { return BitmapsPrefix + sha256 + bitmapSuffix }

// IsBitmapKey reports whether a key is one that BitmapKey makes.
func IsBitmapKey(key string) bool {
	sum := strings.TrimSuffix(strings.TrimPrefix(key, BitmapsPrefix), bitmapSuffix)
	return sha256Rule.MatchString(sum) && BitmapKey(sum) == key
}

// ManifestKey is the key of the manifest of a generation.
func ManifestKey(generation string) string { return GenerationsPrefix + generation + generationSuffix }

// GenerationOf is the generation whose manifest has a key; ok is false where the
// key is not one that ManifestKey makes.
func GenerationOf(key string) (generation string, ok bool) {
	generation = strings.TrimSuffix(strings.TrimPrefix(key, GenerationsPrefix), generationSuffix)
	return generation, IsGeneration(generation) && ManifestKey(generation) == key
}

// IsGeneration reports whether a name has the form of a generation's name.
func IsGeneration(name string) bool { return generationRule.MatchString(name) }

// TimeName is what the names of generations of a time begin with.
func TimeName(at time.Time) string { return at.UTC().Format("20060102T150405.000Z") }

// sumPart is how much is hashed at a time: the hash is one piece of assembly, which
// nothing interrupts, so that a pause of the garbage collection would wait for its end.
const sumPart = 64 << 10

// Sum is the SHA-256 of raw, in lower-case hex, as documents and keys hold it.
func Sum(raw []byte) string {
	hash := sha256.New()
	for part := range slices.Chunk(raw, sumPart) {
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Content is a hash of what a generation says about users: names, order and
// users of its segments and sets, not its time.
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
