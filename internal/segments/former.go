package segments

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"

	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/objects"
	"capper/internal/parallel"
)

// errNoCache, errEmptyCache and errNoEarlier report normal cases in which a source or cache has no earlier generation
// (published version) for a comparison.
var (
	errNoCache    = errors.New("segments cache is not configured")
	errEmptyCache = errors.New("segments cache is empty")
	errNoEarlier  = errors.New("the location has no earlier generation (published version) of the segments")
)

type readFunc = func(ctx context.Context, s *Segment) (*bitmap.Bitmap, error)

// A former is an earlier generation (published version) with which the Refresher compares the next generation to detect
// lost users.
type former struct {
	manifest *Manifest
	// The function "read" returns the bitmap of a segment or set of the generation.
	read readFunc
	// The function "dictionary" returns the dictionary of a generation whose ids are not dense (32-bit integers).
	dictionary func(ctx context.Context) (*Dictionary, error)
	// If the generation is the cached one, the field "cache" is the cache with the generation's bitmaps. Otherwise,
	// "cache" is nil.
	cache *cache
	// The function "back" returns the Back (conversion of user numbers to ids) of a generation whose ids are not dense.
	back func(ctx context.Context) (*Back, error)
	// If ids are not dense, the field "scheme" contains the kind and the hash key of the source's ids.
	scheme *ids.Scheme
	// The field "follows" is the name of the preceding generation in the source.
	follows string
}

// The struct "stayed" describes a completely loaded earlier generation (published version) that a starting service uses
// because it rejects the live generation.
type stayed struct {
	*Generation
	origin string
}

// The method "load" reads all bitmaps of the earlier generation (published version), from the cache if the cache has
// the whole generation.
func (f *former) load(ctx context.Context) (*stayed, error) {
	if f.cache != nil {
		if g, err := f.cache.load(ctx, nil); err == nil && g.Manifest.Generation == f.manifest.Generation {
			return &stayed{g, OriginCache}, nil
		}
	}
	read := func(ctx context.Context, _ int, s *Segment) (*bitmap.Bitmap, error) { return f.read(ctx, s) }
	g, err := readBitmaps(ctx, f.manifest, parallelReads, read)
	if err == nil && f.manifest.IDs != nil {
		g.Scheme = f.scheme
		if g.Dictionary, err = f.dictionary(ctx); err == nil {
			g.Back, err = f.back(ctx)
		}
	}
	return &stayed{g, OriginSource}, err
}

// inUseBefore converts the generation (published version) in use to a former (earlier generation) for a comparison with
// the next generation.
func inUseBefore(now *Snapshot) *former {
	read := func(_ context.Context, s *Segment) (*bitmap.Bitmap, error) { return now.sets[s.Name], nil }
	return &former{manifest: &now.manifest, read: read, scheme: now.scheme,
		dictionary: func(context.Context) (*Dictionary, error) { return now.dictionary, nil },
		back:       func(context.Context) (*Back, error) { return now.back, nil }}
}

// errOtherIDs reports that two generations (published versions) cannot be compared, because their user ids have
// different kinds or hash keys. With another hash key, the same user has another image (64-bit number that stands for
// the id).
var errOtherIDs = errors.New(
	"the user ids of the two generations (published versions) differ in kind or hash key")

// SameIDs reports whether the ids of both generations (published versions) have the same kind and hash key. If both
// generations have the same kind and hash key of ids, a user has the same image (64-bit number that stands for the id)
// in both.
func (m *Manifest) SameIDs(other *Manifest) bool {
	if m.IDs == nil || other.IDs == nil {
		return m.IDs == other.IDs
	}
	return m.IDs.Kind == other.IDs.Kind && m.IDs.Check == other.IDs.Check
}

// dictionaryOf returns a function that gets the dictionary of ids to which the manifest m refers. If the generation g
// (published version) has the dictionary in memory, the returned function takes the dictionary from g. If g lacks the
// dictionary, the returned function reads the dictionary file from the first of the given places that has this file.
func (g *Generation) dictionaryOf(m *Manifest, places ...objects.Source) func(context.Context) (*Dictionary, error) {
	return func(ctx context.Context) (d *Dictionary, err error) {
		if g.Dictionary != nil && m.SameNumbers(g.Manifest) {
			return g.Dictionary, nil
		}
		for _, place := range places {
			if d, err = m.readDictionary(ctx, place); err == nil {
				return d, nil
			}
		}
		return nil, err
	}
}

// The method "formers" yields earlier generations (published versions) for the comparison in which a starting service
// checks the live generation. The most suitable earlier generation comes first in the sequence. The cached generation
// comes first. After the cached generation, the iterator yields the generations of the source that a running service
// would have used. Generations that lack users of a guarded set (set with a limit on lost users) come last. If the
// iterator yields an error, the error explains why an earlier generation is missing.
func (r *Refresher) formers(ctx context.Context, blank *comparison) iter.Seq2[*former, error] {
	return func(yield func(*former, error) bool) {
		if !yield(r.cachedFormer(ctx, blank.next)) {
			return
		}
		earlier, faults := r.earlierFormers(ctx, blank.next)
		for _, err := range faults {
			if !yield(nil, err) {
				return
			}
		}
		var measures, others []*former
		for _, f := range earlier {
			if f.measures(&blank.guarded, blank.next.Manifest) {
				measures = append(measures, f)
			} else {
				others = append(others, f)
			}
		}
		for _, f := range slices.Concat(r.replay(ctx, blank, measures), others) {
			if !yield(f, nil) {
				return
			}
		}
	}
}

// The method "measures" reports whether a comparison with this earlier generation (published version) can show losses
// of guarded sets (sets with a limit on lost users). A comparison with the cached generation can always show losses,
// because a service used this generation. A comparison with a generation of the source shows no loss if a guarded set
// is missing or empty in this generation. Either no service that guards the set ever used such a generation, or this
// generation itself lost the users of the set.
func (f *former) measures(guarded *Guarded, next *Manifest) bool {
	if f.cache != nil {
		return true
	}
	for name := range guarded.MayLose {
		if next.set(name) == nil {
			continue
		}
		if set := f.manifest.set(name); set == nil || set.Cardinality == 0 {
			return false
		}
	}
	return true
}

// cachedFormer returns the cached generation in the form that a comparison with the next generation (published version)
// needs. If the cache lacks a bitmap, the function in the result's field "read" reads the bitmap from the source.
func (r *Refresher) cachedFormer(ctx context.Context, next *Generation) (*former, error) {
	if r.cache == nil {
		return nil, errNoCache
	}
	m, err := ReadLiveManifest(ctx, r.cache.at)
	if errors.Is(err, ErrNothingLive) {
		return nil, errEmptyCache
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest of the generation (published version) in the segments cache: %w", err)
	}
	if !m.SameIDs(next.Manifest) {
		return nil, fmt.Errorf(
			"cached generation (published version) %s cannot be compared with the new generation: %w",
			m.Generation, errOtherIDs)
	}
	return &former{manifest: m, read: next.orRead(r.cache.at, r.cfg.Source), cache: r.cache, scheme: next.Scheme,
		dictionary: next.dictionaryOf(m, r.cache.at, r.cfg.Source),
		back:       func(ctx context.Context) (*Back, error) { return m.ReadBack(ctx, r.cfg.Source) }}, nil
}

// earlierFormers returns earlier generations (published versions) of the source for a comparison, the newest first.
// earlierFormers omits rolled-back generations. The returned faults explain why the read of a generation failed, or why
// there are no earlier generations.
func (r *Refresher) earlierFormers(ctx context.Context, next *Generation) (list []*former, faults []error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	src := r.cfg.Source
	names, withdrawn, err := namesBefore(ctx, src, next.Manifest.Generation)
	if err != nil {
		return nil, []error{err}
	}
	found, errs := make([]*former, len(names)), make([]error, len(names))
	parallel.AtMost(parallelReads, min(len(names), mostReplayed), func(i int) {
		if withdrawn[names[i]] {
			return
		}
		m, err := ReadManifest(ctx, src, names[i])
		if err != nil {
			errs[i] = err
			return
		}
		if withdrawn[m.Content()] {
			return
		}
		if !m.SameIDs(next.Manifest) {
			errs[i] = fmt.Errorf("generation (published version) %s cannot be compared with the new generation: %w",
				m.Generation, errOtherIDs)
			return
		}
		found[i] = &former{manifest: m, read: next.orRead(src), scheme: next.Scheme,
			dictionary: next.dictionaryOf(m, src),
			back:       func(ctx context.Context) (*Back, error) { return m.ReadBack(ctx, src) }}
		if i+1 < len(names) {
			found[i].follows = names[i+1]
		}
	})
	list = slices.DeleteFunc(found, func(f *former) bool { return f == nil })
	faults = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(list)+len(faults) == 0 {
		faults = []error{errNoEarlier}
	}
	return list, faults
}

// Reconsider compares the generation (published version) in use with the newest earlier generation that the source has.
// If the generation in use lacks too many users whom API calls added to sets (RefresherConfig.Overruled), Reconsider
// switches to the earlier generation. Callers call Reconsider after Load and before Run, because the users whom API
// calls added are unknown until a store is open. If no earlier generation is readable, Reconsider keeps the generation
// in use.
func (r *Refresher) Reconsider(ctx context.Context) error {
	now, guarded := r.Current(), r.cfg.Guarded()
	if now == nil || r.cfg.Overruled == nil || guarded.isEmpty() {
		return nil
	}
	c := &comparison{guarded: guarded, next: now.setsOnly(), cores: runtime.GOMAXPROCS(0), object: r.object,
		overruled: r.cfg.Overruled}
	earlier, faults := r.earlierFormers(ctx, c.next)
	for _, f := range earlier {
		if !f.measures(&guarded, c.next.Manifest) && f != earlier[len(earlier)-1] {
			continue
		}
		c.was = f
		break
	}
	if c.was == nil || !c.overrules() {
		r.countOverruled(now)
		return nil
	}
	before, err := c.was.load(ctx)
	if err != nil {
		return fmt.Errorf(
			"generation (published version) %s removes users whom API calls added, "+
				"but the earlier generation %s, which capper needs for a comparison, cannot be read: %w",
			now.Generation(),
			c.against(), errors.Join(append(faults, err)...))
	}
	r.held.former = before
	if r.stay(ctx, r.cfg.Require) {
		r.tag = "" // makes Run compare the live generation again
	}
	return nil
}

// The method "overrules" reports whether the next generation (published version) would remove too many users whom API
// calls added to a guarded set (set with a limit on lost users).
func (c *comparison) overrules() bool {
	for name := range c.guarded.MayLose {
		var loss Loss
		if was := c.was.manifest.set(name); was != nil {
			loss.Allowed = Allowed(was.Cardinality, c.guarded.MayLose[name])
		}
		if c.countOverruled(name, &loss); loss.overrules() {
			return true
		}
	}
	return false
}

// orRead returns a function that gets a bitmap from the generation g (published version) in memory. If g lacks the
// bitmap, the function reads the bitmap from the first of the given places that has it.
func (g *Generation) orRead(places ...objects.Source) readFunc {
	return g.orReadBy(func(ctx context.Context, s *Segment) (b *bitmap.Bitmap, err error) {
		for _, place := range places {
			if b, err = readBitmap(ctx, place, s); err == nil {
				return b, nil
			}
		}
		return nil, err
	})
}

// bitmapWith returns the bitmap with the given SHA-256 if the generation (published version) has it in memory, and
// otherwise nil.
func (g *Generation) bitmapWith(sha256 string) *bitmap.Bitmap {
	for i, b := range g.Sets {
		if b != nil && g.Manifest.Sets[i].SHA256 == sha256 {
			return b
		}
	}
	for i, b := range g.Bitmaps {
		if b != nil && g.Manifest.Segments[i].SHA256 == sha256 {
			return b
		}
	}
	return nil
}

// namesBefore lists the generations (published versions) of a source that are older than the given one, newest first.
// namesBefore also returns the names and content hashes of rolled-back generations, because no service may use a
// rolled-back generation again.
func namesBefore(ctx context.Context, src objects.Source, one string) (names []string, withdrawn map[string]bool,
	err error) {
	list, err := src.List(ctx, GenerationsPrefix)
	if err != nil {
		return nil, nil, fmt.Errorf("list the earlier generations (published versions) of the segments: %w", err)
	}
	withdrawn, err = readWithdrawn(ctx, src)
	if err != nil {
		return nil, nil, fmt.Errorf("read the list of rolled-back generations (published versions) of the segments: %w",
			err)
	}
	for _, o := range list {
		if name, ok := GenerationOf(o.Key); ok && name < one {
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	return names, withdrawn, nil
}

// readWithdrawn reads the names and content hashes of rolled-back generations (published versions) from controls.json.
// readWithdrawn ignores the other fields of controls.json, which matter only to publishers.
func readWithdrawn(ctx context.Context, src objects.Source) (map[string]bool, error) {
	raw, _, err := src.ReadTagged(ctx, ControlsKey, "")
	if errors.Is(err, objects.ErrNotFound) {
		return nil, nil
	}
	var controls struct {
		FormatVersion int `json:"format_version"`
		Withdrawn     []struct {
			Generation string `json:"generation"`
			Content    string `json:"content"`
		} `json:"withdrawn"`
	}
	if err == nil {
		err = decodeOne(raw, &controls, false)
	}
	if err == nil && controls.FormatVersion != FormatVersion {
		err = fmt.Errorf("format_version must be %[2]d, got %[1]d", controls.FormatVersion, FormatVersion)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ControlsKey, err)
	}
	withdrawn := make(map[string]bool, 2*len(controls.Withdrawn))
	for _, w := range controls.Withdrawn {
		withdrawn[w.Generation], withdrawn[w.Content] = true, true
	}
	return withdrawn, nil
}
