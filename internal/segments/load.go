package segments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/parallel"
)

// ErrNothingLive reports that the object current.json does not exist, because no generation was published. An error
// that wraps ErrNothingLive always also wraps objects.ErrNotFound.
var ErrNothingLive = errors.New("no generation is live")

// A Generation is one published version of all segments and sets, in memory and with checked bitmaps.
type Generation struct {
	Manifest *Manifest
	Bitmaps  []*bitmap.Bitmap // one per segment of the manifest, in the same order
	Sets     []*bitmap.Bitmap // one per set of the manifest, in the same order
	// Scheme and Dictionary convert ids to the user numbers in the bitmaps. For dense ids (32-bit integers), Scheme and
	// Dictionary are nil.
	Scheme     *ids.Scheme
	Dictionary *Dictionary
	// Back converts user numbers to ids of the kinds uuid and text. If the generation has no BackFile (file with the
	// user ids), Back is nil.
	Back *Back
	// If the generation was read without its BackFile (file with the user ids), the function lazyBack reads this file.
	// Otherwise, lazyBack is nil.
	lazyBack func() (*Back, error)
	// The field "was" contains the generation before RenumberedBy changed its user numbers. The field "by" contains the
	// Renumbering. If the bitmaps have their original user numbers, both fields are nil.
	was *Generation
	by  *Renumbering
}

// ReadPointer reads current.json, which names the live generation (published version for the services). The comment of
// objects.Source.ReadTagged explains the argument "tag".
func ReadPointer(ctx context.Context, src objects.Source, tag string) (live Pointer, newTag string, err error) {
	body, newTag, err := src.ReadTagged(ctx, CurrentKey, tag)
	if errors.Is(err, objects.ErrNotFound) {
		return live, "", fmt.Errorf("%w: %w", err, ErrNothingLive)
	}
	if err != nil {
		return live, "", err
	}
	live, err = ParsePointer(body)
	return live, newTag, err
}

// ReadManifest reads and checks the manifest of the generation (published version) to which the pointer refers.
func (p Pointer) ReadManifest(ctx context.Context, src objects.Source) (*Manifest, error) {
	m, err := ReadManifest(ctx, src, p.Generation)
	if err == nil {
		err = p.check(m)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// ReadManifest reads and checks the manifest of the generation (published version) with the given name.
func ReadManifest(ctx context.Context, src objects.Source, generation string) (*Manifest, error) {
	if !generationRule.MatchString(generation) {
		return nil, fmt.Errorf("generation %q must be a generation name such as 20261120T101500.000Z-0a1b2c3d",
			generation)
	}
	raw, err := src.Read(ctx, ManifestKey(generation), MaxManifestBytes)
	if err != nil {
		return nil, fmt.Errorf("manifest of generation %s: %w", generation, err)
	}
	return parseManifest(generation, raw)
}

// ReadGeneration reads all bitmaps of a generation (published version) in parallel and checks the size, hash, format,
// cardinality and bounds of each. The error names every bitmap that fails a check.
func ReadGeneration(ctx context.Context, src objects.Source, generation string) (*Generation, error) {
	m, err := ReadManifest(ctx, src, generation)
	if err != nil {
		return nil, err
	}
	return m.ReadBitmaps(ctx, src)
}

// ReadBitmaps reads and checks all bitmaps that the manifest names. If ids are not dense, ReadBitmaps also reads and
// checks the dictionary, the BackFile (file with the user ids) and ids.json.
func (m *Manifest) ReadBitmaps(ctx context.Context, src objects.Source) (*Generation, error) {
	return m.ReadBitmapsOver(ctx, src, nil)
}

// ReadBitmapsOver works like ReadBitmaps, but reuses the bitmaps and files that the generation "known" (published
// version) has in memory. The argument "known" of ReadBitmapsOver may be nil.
func (m *Manifest) ReadBitmapsOver(ctx context.Context, src objects.Source, known *Generation) (*Generation, error) {
	g, err := m.ReadNumbersOver(ctx, src, known)
	if err != nil {
		return nil, err
	}
	return g, g.readBack(ctx, src, known)
}

// ReadNumbersOver works like ReadBitmapsOver, but does not read the BackFile (file with the user ids). The generation
// (published version) that ReadNumbersOver returns therefore cannot convert user numbers to ids.
func (m *Manifest) ReadNumbersOver(ctx context.Context, src objects.Source, known *Generation) (*Generation, error) {
	if known == nil {
		known = &Generation{}
	}
	read := known.orRead(src)
	g, err := readBitmaps(ctx, m, parallelReads, func(ctx context.Context, _ int, s *Segment) (*bitmap.Bitmap, error) {
		return read(ctx, s)
	})
	if err != nil {
		return nil, err
	}
	return g, g.readNumbers(ctx, src, known.Dictionary)
}

// ReadForComparison reads a generation (published version) and converts its bitmaps to the user numbers of the
// dictionary in the argument "numbering". If the argument "numbering" is nil, ReadForComparison keeps the generation's
// own user numbers. ReadForComparison reuses the bitmaps and the dictionary of the generation "known", which may be
// nil. The BackFile (file with the user ids) may be larger than all other objects together. The generation that
// ReadForComparison returns reads the BackFile only when a caller needs an id, and uses ctx for this read.
func (m *Manifest) ReadForComparison(ctx context.Context, src objects.Source, known *Generation,
	numbering *Dictionary) (*Generation, error) {
	if known != nil {
		known = known.Original()
	}
	g, err := m.ReadNumbersOver(ctx, src, known)
	if err != nil {
		return nil, err
	}
	g.lazyBack = sync.OnceValues(func() (*Back, error) { return m.readBackOver(ctx, src, known) })
	return g.RenumberedBy(numbering)
}

// The method Only returns a copy of the manifest with the wanted sets, and without segments and other sets. The copy is
// only for a comparison of the wanted sets, because it is not the manifest of a published generation.
func (m *Manifest) Only(wanted func(set string) bool) *Manifest {
	part := *m
	part.Segments = nil
	part.Sets = slices.DeleteFunc(slices.Clone(m.Sets), func(s Set) bool { return !wanted(s.Name) })
	return &part
}

// readBitmap reads and checks the bitmap of one segment or set.
func readBitmap(ctx context.Context, src objects.Source, s *Segment) (*bitmap.Bitmap, error) {
	raw, err := src.Read(ctx, s.Key, s.SizeBytes)
	if err != nil {
		return nil, err
	}
	return s.open(raw)
}

// readBitmaps reads the bitmaps that a manifest names, at most atOnce at a time. If several segments or several sets
// have the same bitmap, readBitmaps reads the bitmap once.
func readBitmaps(ctx context.Context, m *Manifest, atOnce int, read func(ctx context.Context, entry int,
	s *Segment) (*bitmap.Bitmap, error)) (*Generation, error) {
	entries, segments := m.Entries(), len(m.Segments)
	all := make([]*bitmap.Bitmap, len(entries))
	faults := make([]error, len(all))
	first := m.firstOf(entries)
	parallel.AtMost(atOnce, len(all), func(i int) {
		if first[i] == i {
			all[i], faults[i] = read(ctx, i, entries[i])
		}
	})
	for i, s := range entries {
		if all[i] = all[first[i]]; all[i] != nil && faults[i] == nil {
			faults[i] = s.agree(all[i])
		}
		if faults[i] != nil {
			faults[i] = fmt.Errorf("%s: %w", m.whatIs(i), faults[i])
		}
	}
	g := &Generation{Manifest: m, Bitmaps: all[:segments:segments], Sets: all[segments:]}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("generation %s: %w", m.Generation, err)
	}
	return g, nil
}

// firstOf returns the index of the first segment with the same bitmap for each segment, and of the first set with the
// same bitmap for each set. firstOf never uses a segment's bitmap for a set, because the method "fetch" may skip
// bitmaps of segments, but never bitmaps of sets.
func (m *Manifest) firstOf(entries []*Segment) []int {
	first := make([]int, len(entries))
	seen := map[string]int{}
	for i, s := range entries {
		if i == len(m.Segments) {
			clear(seen)
		}
		if _, ok := seen[s.SHA256]; !ok {
			seen[s.SHA256] = i
		}
		first[i] = seen[s.SHA256]
	}
	return first
}

// The method "bitmap" returns the bitmap of a segment or set. The argument "entry" of the method "bitmap" is the index
// of the segment or set in the list Manifest.Entries.
func (g *Generation) bitmap(entry int) *bitmap.Bitmap {
	if entry < len(g.Bitmaps) {
		return g.Bitmaps[entry]
	}
	return g.Sets[entry-len(g.Bitmaps)]
}

// parallelReads is the maximum number of bitmaps that are read at the same time.
const parallelReads = 8

// Snapshot converts the generation (published version) to a Snapshot, which can look up the segment, sets and time zone
// of users.
func (g *Generation) Snapshot() *Snapshot { return newMemory(nil).snapshot(g) }

// ReadLiveManifest reads and checks current.json, and the manifest of the generation (published version) that
// current.json names. If nothing has been published, ReadLiveManifest returns ErrNothingLive.
func ReadLiveManifest(ctx context.Context, src objects.Source) (*Manifest, error) {
	live, _, err := ReadPointer(ctx, src, "")
	if err != nil {
		return nil, err
	}
	return live.ReadManifest(ctx, src)
}

// ReadSegment looks up a segment or set in a manifest by its name, and reads and checks its bitmap.
func ReadSegment(ctx context.Context, src objects.Source, m *Manifest, name string) (*bitmap.Bitmap, error) {
	for i, s := range m.Entries() {
		if s.Name != name {
			continue
		}
		b, err := readBitmap(ctx, src, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.whatIs(i), err)
		}
		return b, nil
	}
	return nil, fmt.Errorf(
		"segment or set %q does not exist in generation (published version) %s, which has the names %q",
		name, m.Generation, m.someNames())
}

// shownNames is the maximum number of segment and set names in one error message.
const shownNames = 60

func (m *Manifest) someNames() (names []string) {
	all := m.Entries()
	for _, s := range all[:min(len(all), shownNames)] {
		names = append(names, s.Name)
	}
	if more := len(all) - shownNames; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

// whatIs returns the word "segment" or "set" and the name of the entry Entries()[i], for error messages.
func (m *Manifest) whatIs(i int) string {
	if i < len(m.Segments) {
		return fmt.Sprintf("segment %q", m.Segments[i].Name)
	}
	return fmt.Sprintf("set %q", m.Sets[i-len(m.Segments)].Name)
}
