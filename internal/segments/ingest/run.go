package ingest

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"capper/internal/bitmap"
	"capper/internal/ids"
	"capper/internal/segments"
	"capper/internal/segments/ingest/format"
	"capper/internal/segments/publish"
)

// Result is the result of a build: the segments and sets, and facts about the input files.
type Result struct {
	Candidate *publish.Candidate
	// Overlaps lists pairs of segments that have users in common in the inputs, even if Run has resolved these
	// overlaps.
	Overlaps []publish.Overlap
	Files    []FileReport
	BadRows  int64
	Samples  []format.Bad // the first bad rows
	// Shortfalls lists inputs that have less content than their Expect states.
	Shortfalls []string
	// Shared lists the first pairs of known ids that have the same image (64-bit number that stands for the id), and
	// SharedCount is the number of all such pairs. Twins describes pairs of nearly equal text ids.
	Shared      []SharedImage
	SharedCount int64
	Twins       Twins
	odd         []oddText // text ids of an amend, for WarningsOver
	// LeftOut lists files that match a pattern, but whose names are not those of data files.
	LeftOut []string
}

// The method Proposal converts the result to a proposal for the guard of package publish. The argument "base" of
// Proposal is the live state that a publish would replace.
func (r *Result) Proposal(base *publish.LiveState) *publish.Proposal {
	p := &publish.Proposal{Candidate: r.Candidate, Base: base, Shortfalls: r.Shortfalls, BadRows: r.BadRows}
	for _, f := range r.Files {
		if f.Rows == 0 {
			p.EmptyFiles = append(p.EmptyFiles, f.File)
		}
	}
	return p
}

// OverlapError reports that segments have users in common, although the plan has no order of precedence for overlaps.
type OverlapError struct {
	Overlaps []publish.Overlap
}

func (e *OverlapError) Error() string {
	text := "segments overlap"
	for _, o := range e.Overlaps {
		samples := fmt.Sprint(o.Samples)
		if len(o.SampleTexts) > 0 {
			samples = o.SampleText()
		}
		text += fmt.Sprintf("\n  %s and %s: %d users, such as %s", o.A, o.B, o.Users, samples)
	}
	return text
}

// PlanError reports a fault of the build's plan, not of its input files.
type PlanError struct{ Err error }

func (e *PlanError) Error() string { return e.Err.Error() }
func (e *PlanError) Unwrap() error { return e.Err }

// A step is a function for progress output. Run calls this function with a description of each step.
type step func(what string)

// Run reads the input files of a plan and builds the segments and sets. If the error is an *OverlapError or a
// *BadRowsError, Run also returns the result for a report. If Run returns an error, the caller must not publish the
// result.
func Run(ctx context.Context, p *Plan, cfg Config, step step) (*Result, error) {
	if err := p.check(); err != nil {
		return nil, &PlanError{err}
	}
	cfg.MaxBadRows = p.MaxBadRows
	b := &builder{plan: p, reader: NewReader(cfg), made: map[string]*bitmap.Bitmap{},
		named: map[string]*bitmap.Bitmap{}, byName: map[string]*Definition{}, step: step,
		asOf: map[string]time.Time{}, prefix: map[string][]FileReport{}}
	if cfg.Scheme != nil {
		// More frequent garbage collections cost little, because the collected images are a few large slices without
		// pointers.
		defer debug.SetGCPercent(debug.SetGCPercent(20))
		b.images = &images{back: newBack(cfg.Scheme, cfg.Names && cfg.Scheme.Kind() != ids.Uint64),
			twins: newTwinFinder(cfg.Scheme)}
	}
	candidate, err := b.build(ctx)
	if err != nil {
		return nil, err
	}
	result := &Result{Candidate: candidate, Files: b.reader.Reports(), Shortfalls: b.reader.Shortfalls(),
		LeftOut: b.reader.LeftOut()}
	result.BadRows, result.Samples = b.reader.BadRows()
	result.Shared, result.SharedCount, result.Twins = b.shared, b.sharedCount, b.twins
	result.odd = b.odd
	if err := b.reader.Check(); err != nil {
		return result, err
	}
	step("looking for overlaps")
	result.Overlaps = candidate.Overlaps()
	if len(result.Overlaps) == 0 {
		return result, nil
	}
	if !p.Precedence && len(p.Order) == 0 {
		return result, &OverlapError{Overlaps: result.Overlaps}
	}
	candidate.Resolve()
	return result, nil
}

// A builder makes the segments and sets that a plan defines. A builder converts each finished segment or set to a
// bitmap. Besides tables and the operands of set operations, a builder keeps only one bitmap.Set in memory at a time.
type builder struct {
	plan   *Plan
	reader *reader
	rows   map[string]*bitmap.Set    // rows of the tables, by segment or set
	named  map[string]*bitmap.Bitmap // sets from the tables of sets
	made   map[string]*bitmap.Bitmap
	byName map[string]*Definition
	asOf   map[string]time.Time    // of each definition in made; zero: unknown
	tables []FileReport            // the files of the tables
	prefix map[string][]FileReport // the files of the tables of sets, by prefix
	step   step

	images *images // the inputs of ids that are not dense; nil: ids are dense
	// If "images" is not nil, the map tableImages contains the rows of tables, and the map "read" contains the inputs
	// of definitions, both by name.
	tableImages, setImages map[string]*imageList
	read                   map[string]input
	shared                 []SharedImage // the first of sharedCount pairs of ids that share an image
	sharedCount            int64
	twins                  Twins
	odd                    []oddText
}

func (b *builder) build(ctx context.Context) (*publish.Candidate, error) {
	if len(b.plan.Tables) > 0 {
		b.step("reading tables")
		if err := b.readTables(ctx); err != nil {
			return nil, err
		}
		b.tables = b.reader.Reports()
	}
	if err := b.readSetTables(ctx); err != nil {
		return nil, err
	}
	if len(b.plan.Segments) == 0 {
		for _, name := range b.plan.Order {
			b.plan.Segments = append(b.plan.Segments, Definition{Name: name})
		}
		if err := b.plan.check(); err != nil {
			return nil, &PlanError{err}
		}
	}
	for _, r := range b.plan.definitions() {
		b.byName[r.Name] = &r
	}
	names, err := b.names()
	if err != nil {
		return nil, &PlanError{err}
	}
	c := &publish.Candidate{Names: names}
	if b.images != nil {
		if err := b.number(ctx, names, c); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		made, err := b.make(ctx, name)
		if err != nil {
			return nil, err
		}
		c.Bitmaps = append(c.Bitmaps, made)
	}
	for _, r := range b.plan.published() {
		made, err := b.make(ctx, r.Name)
		if err != nil {
			return nil, err
		}
		at, given := b.plan.asOf(r.Name)
		if !given {
			at = b.asOf[r.Name]
		}
		c.Sets = append(c.Sets, publish.Set{Name: r.Name, Bitmap: made, Growth: r.Growth, AsOf: at, AsOfGiven: given})
	}
	return c, nil
}

func (b *builder) readTables(ctx context.Context) (err error) {
	if b.images != nil {
		return b.readTableImages(ctx)
	}
	b.rows, err = b.reader.ReadTable(ctx, b.plan.Tables, b.known())
	return err
}

func (b *builder) readSets(ctx context.Context, t SetTable) (map[string]*bitmap.Bitmap, error) {
	if b.images != nil {
		return b.readSetImages(ctx, t)
	}
	return b.reader.ReadSets(ctx, t.Inputs, t.Prefix)
}

// readInputs returns the users from the input files of a definition, and the reports about these files.
func (b *builder) readInputs(ctx context.Context, r *Definition) (*bitmap.Set, []FileReport, error) {
	if b.images != nil {
		of := b.read[r.Name]
		delete(b.read, r.Name)
		set := new(bitmap.Set)
		if of.users != nil {
			set.AddBitmap(of.users)
		}
		return set, of.files, nil
	}
	before := len(b.reader.Reports())
	set, err := b.reader.ReadIDs(ctx, r.Inputs)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %q: %w", b.plan.kindOf(r.Name), r.Name, err)
	}
	return set, b.reader.Reports()[before:], nil
}

// readSetTables reads the tables whose rows name sets. If the plan does not define a named set, readSetTables adds a
// definition to the plan. The added definitions are in the order of their names, because the order in the files has no
// meaning.
func (b *builder) readSetTables(ctx context.Context) error {
	for _, t := range b.plan.SetTables {
		b.step("reading tables of " + t.Prefix)
		before := len(b.reader.Reports())
		sets, err := b.readSets(ctx, t)
		if err != nil {
			return err
		}
		b.prefix[t.Prefix] = b.reader.Reports()[before:]
		defined := map[string]bool{}
		for _, r := range b.plan.definitions() {
			defined[r.Name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(sets)) {
			b.named[name] = sets[name]
			if !defined[name] {
				b.plan.Sets = append(b.plan.Sets, Definition{Name: name, Publish: true})
			}
		}
	}
	if len(b.plan.SetTables) == 0 {
		return nil
	}
	if n := len(b.plan.published()); n > segments.MaxSets {
		return &PlanError{fmt.Errorf(
			"a generation (published version) must have at most %d sets, including the sets of tables, got %d",
			segments.MaxSets, n)}
	}
	return nil
}

// The method "known" returns the names of the plan's segments and sets that may occur in the rows of a table.
func (b *builder) known() []string {
	names := slices.Clone(b.plan.Order)
	list := b.plan.published()
	if len(b.plan.Segments) > 0 {
		names, list = nil, b.plan.definitions()
	}
	for _, r := range list {
		names = append(names, r.Name)
	}
	return names
}

// The method "names" returns the names of the segments in the order of precedence.
func (b *builder) names() ([]string, error) {
	var names []string
	for _, r := range b.plan.Segments {
		names = append(names, r.Name)
	}
	order := b.plan.Order
	if len(order) == 0 {
		return names, nil
	}
	if !slices.Equal(slices.Sorted(slices.Values(order)), slices.Sorted(slices.Values(names))) {
		return nil, fmt.Errorf("precedence must name every segment exactly once: it names %q, but the segments are %q",
			order,
			names)
	}
	return order, nil
}

// The method "make" returns the users of the segment or set with the given name. The method "make" first makes all
// segments and sets to which the definition refers.
func (b *builder) make(ctx context.Context, name string) (*bitmap.Bitmap, error) {
	if made := b.made[name]; made != nil {
		return made, nil
	}
	r, named := b.byName[name], b.named[name]
	delete(b.named, name)
	if named != nil && len(r.Inputs)+len(r.refs()) == 0 && b.rows[name] == nil {
		b.date(r, nil)
		b.made[name] = named
		return named, nil
	}
	for _, ref := range r.refs() {
		if _, err := b.make(ctx, ref); err != nil {
			return nil, err
		}
	}
	b.step("reading " + name)
	set, files, err := b.readInputs(ctx, r)
	if err != nil {
		return nil, err
	}
	b.date(r, files)
	if rows := b.rows[name]; rows != nil {
		set.Union(rows)
		delete(b.rows, name)
	}
	if named != nil {
		set.AddBitmap(named)
	}
	b.combine(set, r)
	b.step("encoding " + name)
	b.made[name] = set.Bitmap()
	return b.made[name], nil
}

func (b *builder) combine(set *bitmap.Set, r *Definition) {
	for _, name := range r.Union {
		set.AddBitmap(b.made[name])
	}
	if len(r.Intersect) > 0 && len(r.Inputs)+len(r.Union) == 0 && set.Empty() {
		set.AddBitmap(b.made[r.Intersect[0]]) // a definition without inputs and unions: users in all of Intersect
	}
	for _, name := range r.Intersect {
		set.Intersect(b.made[name])
	}
	for _, name := range r.Minus {
		set.Subtract(b.made[name])
	}
}
