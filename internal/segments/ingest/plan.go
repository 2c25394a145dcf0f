package ingest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/segments"
	"capper/internal/segments/publish"
)

// A Plan describes a build of segments and sets. Command-line flags or a build file define the Plan.
type Plan struct {
	// Segments lists the segments in the order of precedence. If Segments is empty, Order names the segments, and
	// tables contain them.
	Segments []Definition
	// Sets contains named definitions to which other definitions refer. The build publishes the definitions whose field
	// Publish is true, in the order of Sets.
	Sets []Definition
	// Tables are input files whose rows have an id and the name of a segment, or of a set in Sets. The build adds each
	// id to the named segment or set; a row with any other name is bad.
	Tables []Input
	// SetTables are input files whose rows have an id and the name of a set. The build publishes all sets of SetTables,
	// after the sets of the field Sets.
	SetTables []SetTable
	// SetsAlone is true for the plan of an amend (publish of some sets). Such a plan has sets and no segments.
	SetsAlone bool
	// If Precedence is true, a user in several segments stays in the first of these segments. If Precedence is false,
	// overlaps of segments are an error.
	Precedence bool
	// If Order is not empty, Order names all segments in the order of precedence, and Precedence must be true.
	Order []string
	// MaxBadRows is the limit of bad rows. Up to this limit, the build skips and counts bad rows. Above this limit, the
	// build returns an error.
	MaxBadRows Tolerance
	// Bounds contains the limits for publishing without an operator's approval. The caller of Run must check these
	// limits.
	Bounds publish.Bounds
	// AsOf contains, by the name of a published set, the as_of (time up to which the set reflects API calls) that the
	// operator stated. The name "country/*" stands for all sets of a folder. A set without an entry gets the time of
	// its newest input file.
	AsOf map[string]time.Time
}

// SetTable describes input files (tables) whose rows have an id and a name. The name of a set is the field Prefix,
// followed by the name in the row. If the plan itself defines a set with the name of a table's set, the build adds the
// table's users to the defined set.
type SetTable struct {
	Prefix string // for example tz/
	Inputs []Input
}

// AddSetTable adds input files whose rows name sets to the plan's SetTable with the same prefix.
func (p *Plan) AddSetTable(prefix string, inputs ...Input) {
	for i := range p.SetTables {
		if p.SetTables[i].Prefix == prefix {
			p.SetTables[i].Inputs = append(p.SetTables[i].Inputs, inputs...)
			return
		}
	}
	p.SetTables = append(p.SetTables, SetTable{Prefix: prefix, Inputs: inputs})
}

// Definition defines the users of a segment or set: all users in any of Inputs or Union who are also in each of
// Intersect and in none of Minus. The fields Union, Intersect and Minus name segments or sets; the plan may define
// these in any order. A definition that names a segment sees all users of this segment, even users whom the build later
// removes because of overlaps.
type Definition struct {
	Name      string
	Inputs    []Input
	Union     []string
	Intersect []string
	Minus     []string
	// Publish is true if the generation (published version) will contain the set.
	Publish bool
	// Growth is the setting "only grows" of a published set.
	Growth publish.Growth
}

// The method "check" returns an error that lists all faults of the build's plan.
func (p *Plan) check() error {
	if len(p.Segments) == 0 && len(p.Tables) == 0 && !p.SetsAlone {
		if len(p.SetTables) > 0 || slices.ContainsFunc(p.Sets, func(s Definition) bool { return s.Publish }) {
			return errors.New(
				"segments are missing, so the default limits would apply to every user: " +
					"publish the sets together with the segments")
		}
		return errors.New("nothing to build: give at least one segment or table")
	}
	var faults []error
	if len(p.Segments)+len(p.Order) == 0 && !p.SetsAlone {
		faults = append(faults, errors.New(
			"a table needs the list of its segments, to detect misspelt names: "+
				"set --precedence NAME,…, or the key 'segments' in the build file"))
	}
	if len(p.Segments) > segments.MaxSegments {
		faults = append(faults, fmt.Errorf("a generation (published version) must have at most %d segments, got %d",
			segments.MaxSegments, len(p.Segments)))
	}
	if n := len(p.published()); n > segments.MaxSets {
		faults = append(faults, fmt.Errorf("a generation (published version) must have at most %d sets, got %d",
			segments.MaxSets, n))
	}
	for i, t := range p.SetTables {
		faults = append(faults, checkPrefix(t.Prefix))
		for _, other := range p.SetTables[:i] {
			if strings.HasPrefix(t.Prefix, other.Prefix) || strings.HasPrefix(other.Prefix, t.Prefix) {
				faults = append(faults, fmt.Errorf(
					"set prefixes %q and %q overlap: one must not be the beginning of the other",
					other.Prefix, t.Prefix))
			}
		}
	}
	known := map[string]bool{}
	for _, r := range p.definitions() {
		if err := r.checkName(); err != nil {
			faults = append(faults, err)
		}
		if known[r.Name] {
			faults = append(faults, fmt.Errorf("segment or set %q is given twice", r.Name))
		}
		known[r.Name] = true
	}
	for _, r := range p.definitions() {
		if len(r.Inputs)+len(r.Union)+len(r.Intersect) == 0 && !p.mayBeInTable(&r) {
			faults = append(faults, fmt.Errorf(
				"segment or set %q must have input files, a union or an intersection", r.Name))
		}
		for _, name := range r.refs() {
			if !known[name] {
				faults = append(faults, fmt.Errorf(
					"segment or set %q refers to %q, which is neither a segment nor a set", r.Name, name))
			}
		}
	}
	if errors.Join(faults...) == nil {
		faults = append(faults, p.checkCycles())
	}
	return errors.Join(faults...)
}

// checkName checks the name of the segment or set. The name of a published set may be longer than other names, and may
// contain folders.
func (r *Definition) checkName() error {
	if r.Publish {
		return segments.CheckSetName(r.Name)
	}
	return segments.CheckName(r.Name)
}

func checkPrefix(prefix string) error {
	if !strings.HasSuffix(prefix, "/") || prefix != segments.ZonePrefix && segments.CheckSetName(prefix+"x") != nil {
		return fmt.Errorf("set prefix %q must be the beginning of a set name and end in '/', such as %s or country/",
			prefix, segments.ZonePrefix)
	}
	return nil
}

// mayBeInTable reports whether all users of a segment or set may come from the rows of a table. The definition of a
// segment or set that may be in a table needs no input.
func (p *Plan) mayBeInTable(r *Definition) bool {
	return len(p.Tables) > 0 || r.Publish && p.inSetTable(r.Name)
}

func (p *Plan) inSetTable(name string) bool {
	return slices.ContainsFunc(p.SetTables, func(t SetTable) bool { return strings.HasPrefix(name, t.Prefix) })
}

// The method "published" returns the sets of the plan that the build will publish.
func (p *Plan) published() []Definition {
	return slices.DeleteFunc(slices.Clone(p.Sets), func(s Definition) bool { return !s.Publish })
}

// SetGrowth changes the setting "only grows" of a published set in the plan.
func (p *Plan) SetGrowth(name string, growth publish.Growth) error {
	for i := range p.Sets {
		if p.Sets[i].Name == name && p.Sets[i].Publish {
			p.Sets[i].Growth = growth
			return nil
		}
	}
	return fmt.Errorf("%q: must be the name of a set to publish", name)
}

// SetAsOf stores, in the plan, the as_of (time up to which the set reflects API calls) that the operator stated. The
// argument "name" of SetAsOf is the name of a published set, or of a folder of sets such as "country/*".
func (p *Plan) SetAsOf(name string, at time.Time) error {
	if !p.publishesSet(name) {
		return fmt.Errorf("%q: must be the name of a set to publish", name)
	}
	if p.AsOf == nil {
		p.AsOf = map[string]time.Time{}
	}
	p.AsOf[name] = at
	return nil
}

// asOf returns the as_of (time up to which a set's file reflects all changes) that the operator stated for a set.
func (p *Plan) asOf(set string) (at time.Time, ok bool) {
	if at, ok = p.AsOf[set]; !ok {
		folder, _, _ := strings.Cut(set, "/")
		at, ok = p.AsOf[folder+"/*"]
	}
	return at, ok
}

// publishesSet works like Publishes, but only for sets.
func (p *Plan) publishesSet(name string) bool {
	return slices.ContainsFunc(p.published(), named(name)) || p.inSetTable(name)
}

// The function "named" returns a function that reports whether a definition has the given name, or is in the given
// folder, such as "country/*".
func named(name string) func(Definition) bool {
	folder, isFolder := strings.CutSuffix(name, "*")
	return func(d Definition) bool {
		return d.Name == name || isFolder && strings.HasSuffix(folder, "/") && strings.HasPrefix(d.Name, folder)
	}
}

// The method Publishes reports whether a name is that of a segment or published set of the plan, or of a folder of such
// sets ("country/*"). The method Publishes does not find names that occur only in the rows of tables, because the build
// has not read the tables yet.
func (p *Plan) Publishes(name string) bool {
	return slices.Contains(p.Order, name) || slices.ContainsFunc(p.Segments, named(name)) || p.publishesSet(name)
}

func (p *Plan) definitions() []Definition { return slices.Concat(p.Segments, p.Sets) }

// kindOf returns "segment" or "set", the kind of the named definition in the plan, for error messages.
func (p *Plan) kindOf(name string) string {
	if slices.ContainsFunc(p.Segments, func(s Definition) bool { return s.Name == name }) {
		return "segment"
	}
	return "set"
}

func (r *Definition) refs() []string { return slices.Concat(r.Union, r.Intersect, r.Minus) }

func (p *Plan) checkCycles() error {
	byName := map[string]Definition{}
	for _, r := range p.definitions() {
		byName[r.Name] = r
	}
	done := map[string]bool{}
	var visit func(name string, path []string) error
	visit = func(name string, path []string) error {
		if slices.Contains(path, name) {
			return fmt.Errorf("%q refers to itself: %q", name, append(path, name))
		}
		if done[name] {
			return nil
		}
		r := byName[name]
		for _, ref := range r.refs() {
			if err := visit(ref, append(path, name)); err != nil {
				return err
			}
		}
		done[name] = true
		return nil
	}
	for _, r := range p.definitions() {
		if err := visit(r.Name, nil); err != nil {
			return err
		}
	}
	return nil
}
