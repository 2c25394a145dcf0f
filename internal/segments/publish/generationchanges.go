package publish

import (
	"context"
	"errors"

	"capper/internal/objects"
	"capper/internal/segments"
)

// The type Changes describes the differences between two generations (published versions).
type Changes struct {
	From, To *segments.Manifest
	// Exact is true if the users of both generations were compared. If Exact is false, only user counts were compared:
	// Added, Removed and MovedFrom are unknown, and NoSegment is nil.
	Exact     bool
	Segments  []Change
	Sets      []Change
	NoSegment *NoSegment
}

// A pair contains the names of two compared generations (published versions).
type pair struct{ from, to string }

// NoGenerationError names a generation (published version) that does not exist. NoGenerationError wraps
// objects.ErrNotFound.
type NoGenerationError struct{ Generation string }

func (e *NoGenerationError) Error() string { return "generation " + e.Generation + " does not exist" }

// Unwrap returns objects.ErrNotFound.
func (e *NoGenerationError) Unwrap() error { return objects.ErrNotFound }

// The method Changes compares two generations (published versions). If one of the two generations does not exist,
// Changes returns a *NoGenerationError. The caller of Changes must not change the result.
func (h *History) Changes(ctx context.Context, from, to string) (*Changes, error) {
	asked := pair{from, to}
	if c := h.known(asked); c != nil {
		return c, nil
	}
	if err := h.take(ctx); err != nil {
		return nil, err
	}
	defer h.end()
	if c := h.known(asked); c != nil { // another caller may have made the same comparison in the meantime
		return c, nil
	}
	c, err := h.compare(ctx, asked)
	if err == nil {
		h.keep(asked, c)
	}
	return c, err
}

func (h *History) known(asked pair) *Changes {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.compared[asked]
}

func (h *History) keep(asked pair, c *Changes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.compared[asked] = c
	h.order = append(h.order, asked)
	if len(h.order) > kept {
		delete(h.compared, h.order[0])
		h.order = h.order[1:]
	}
}

func (h *History) compare(ctx context.Context, asked pair) (*Changes, error) {
	from, err := h.manifest(ctx, asked.from)
	if err != nil {
		return nil, err
	}
	to, err := h.manifest(ctx, asked.to)
	if err != nil {
		return nil, err
	}
	if sizeOf(from)+sizeOf(to) > h.mostBytes {
		return &Changes{From: from, To: to, Segments: sizes(segmentSizes(from), segmentSizes(to)),
			Sets: sizes(setSizes(from), setSizes(to))}, nil
	}
	before, err := from.ReadNumbersOver(ctx, h.source, nil)
	if err != nil {
		return nil, err
	}
	after, err := to.ReadNumbersOver(ctx, h.source, before)
	if err != nil {
		return nil, err
	}
	if before, err = ForComparison(before, after); err != nil {
		return nil, err
	}
	later := CandidateOf(after)
	none := later.NoSegment(before)
	return &Changes{From: from, To: to, Exact: true, Segments: later.Compare(before), Sets: later.CompareSets(before),
		NoSegment: &none}, nil
}

// The method "manifest" reads the manifest of the named generation (published version). If the generation does not
// exist, or if the argument cannot be the name of a generation, the method "manifest" returns a *NoGenerationError.
func (h *History) manifest(ctx context.Context, generation string) (*segments.Manifest, error) {
	if !segments.IsGeneration(generation) {
		return nil, &NoGenerationError{generation}
	}
	m, err := segments.ReadManifest(ctx, h.source, generation)
	if errors.Is(err, objects.ErrNotFound) {
		return nil, &NoGenerationError{generation}
	}
	return m, err
}

// sizeOf returns the total size of a generation's bitmaps and dictionary, which a comparison must read. sizeOf ignores
// the BackFile (file with the user ids), because a comparison does not read this file.
func sizeOf(m *segments.Manifest) (size int64) {
	for _, s := range m.Entries() {
		size += s.SizeBytes
	}
	if m.IDs != nil {
		for _, layer := range m.IDs.Dictionary {
			size += layer.SizeBytes
		}
	}
	return size
}

// An entry describes a segment or set by the data in the manifest, for a comparison of two generations (published
// versions) without bitmaps.
type entry struct {
	Change        // only the name is set
	count  uint64 // number of users
	users  string // the result of segments.Manifest.Users
}

func segmentSizes(m *segments.Manifest) (list []entry) {
	for _, s := range m.Segments {
		list = append(list, entry{Change{Segment: s.Name}, s.Cardinality, m.Users(&s)})
	}
	return list
}

func setSizes(m *segments.Manifest) (list []entry) {
	for _, s := range m.Sets {
		list = append(list, entry{Change{Set: s.Name}, s.Cardinality, m.Users(&s.Segment)})
	}
	return list
}

// The function "sizes" returns the changes of the user counts of segments or sets. The entries of the argument "after"
// come first in the result, in the same order. The vanished entries come last in the result.
func sizes(before, after []entry) (changes []Change) {
	was := map[string]entry{}
	for _, e := range before {
		was[e.Name()] = e
	}
	for _, e := range after {
		old, there := was[e.Name()]
		e.Before, e.After, e.State = old.count, e.count, changed
		switch {
		case !there:
			e.State = appears
		case old.users == e.users:
			e.State = Same
		case e.After == 0:
			e.State = empties
		case e.Before == 0:
			e.State = fills
		}
		changes = append(changes, e.Change)
		delete(was, e.Name())
	}
	for _, e := range before {
		if _, vanishes := was[e.Name()]; vanishes {
			e.Before, e.State = e.count, Vanishes
			changes = append(changes, e.Change)
		}
	}
	return changes
}
