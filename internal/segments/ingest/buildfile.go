package ingest

import (
	"maps"
	"path/filepath"
	"slices"
	"time"

	"capper/internal/objects"
	"capper/internal/segments/publish"
	"capper/internal/yamltree"
)

// buildFile parses a build file (YAML file that defines segments and sets) into a Plan. Relative paths in a build file
// start at the folder of the build file.
type buildFile struct {
	folder string
	base   Input // the default settings of all inputs
	into   *Plan
	named  []reference // names in allow_new
}

// A reference is a name of a segment or set in the build file, with the position of the name in the file.
type reference struct {
	name string
	at   yamltree.Value
}

// Load parses a build file (YAML file that defines segments and sets) into a Plan. The argument "base" of Load contains
// the default settings of all inputs; the build file overrides these defaults. The argument "into" of Load is the Plan
// that receives the content of the build file. The Plan already contains the values of command-line flags. If the build
// file is readable but faulty, the error contains a *yamltree.Faults with all faults.
func Load(path string, base Input, into *Plan) (*Plan, error) {
	raw, err := yamltree.ReadFile(path)
	if err != nil {
		return nil, err
	}
	plan, err := parse(raw, path, base, into)
	return plan, yamltree.Counted(err)
}

func parse(raw []byte, path string, base Input, into *Plan) (*Plan, error) {
	root, err := yamltree.Root(raw)
	if err != nil {
		return nil, &yamltree.Faults{File: path, List: []yamltree.Fault{*yamltree.Explain(err)}}
	}
	f := &buildFile{folder: filepath.Dir(path), base: base, into: into}
	f.read(root)
	if faults := root.Faults(); len(faults) > 0 {
		return nil, (&yamltree.Faults{File: path, List: faults}).Sorted()
	}
	return into, nil
}

func (f *buildFile) read(root yamltree.Value) {
	bounds := &f.into.Bounds
	bounds.Of = map[string]publish.SegmentBounds{}
	root.Key("defaults", func(v yamltree.Value) { v.Fields(f.columnFields(&f.base)) })
	root.Fields(map[string]yamltree.Field{
		"segments":        list(func(v yamltree.Value) { f.segment(v) }), // in the order of precedence
		"sets":            list(func(v yamltree.Value) { f.set(v) }),
		"tables":          list(f.table),
		"overlaps":        f.overlaps,
		"max_bad_rows":    f.maxBadRows(),
		"defaults":        func(yamltree.Value) {}, // read earlier, because "defaults" also applies to fields before it
		"max_change":      percent(func(p float64) { bounds.MaxChange = p }),
		"max_week_change": percent(func(p float64) { bounds.MaxWeekChange = &p }),
		"max_unassigned":  percent(func(p float64) { bounds.MaxUnassigned = &p }),
		"allow_new":       list(f.allowNew),
		"allow_first":     list(f.allowFirst),
		"accept":          list(f.accept),
	})
	for _, r := range f.named {
		if !f.into.Publishes(r.name) {
			r.at.Fault("%q: must be the name of a segment or set in this build", r.name)
		}
	}
}

func list(each yamltree.Field) yamltree.Field { return func(v yamltree.Value) { v.List(each) } }

func (f *buildFile) segment(v yamltree.Value) {
	var r Definition
	var own publish.SegmentBounds
	fields := f.definitionFields(&r)
	addBounds(fields, &own)
	v.Fields(fields)
	checkBounds(v, &own)
	f.into.Segments = append(f.into.Segments, r)
	f.into.Bounds.Of[r.Name] = own
}

// The method "set" parses a set of the build file. If the build file has "publish: true" for the set, the generation
// (published version) will contain the set, and the set may have limits. A set without "publish: true" is not
// published, but other segments and sets can refer to it.
func (f *buildFile) set(v yamltree.Value) {
	var r Definition
	var own publish.SegmentBounds
	fields, bounds, bounded := f.definitionFields(&r), map[string]yamltree.Field{"only_grows": onlyGrows(&r.Growth)},
		false
	addBounds(bounds, &own)
	for key, field := range bounds {
		fields[key] = func(v yamltree.Value) {
			bounded = true
			field(v)
		}
	}
	fields["publish"] = yamltree.Bool(&r.Publish)
	var asOf time.Time
	fields["as_of"] = checked(func(text string) (err error) {
		asOf, err = publish.ParseAsOf(text, time.Now())
		return err
	})
	v.Fields(fields)
	if !r.Publish && bounded {
		v.Fault("only_grows and bounds such as max_change and min_users require publish: true in the same set")
	}
	if !r.Publish && !asOf.IsZero() {
		v.FaultOf("as_of", "requires publish: true")
	}
	checkBounds(v, &own)
	f.into.Sets = append(f.into.Sets, r)
	if r.Publish && !asOf.IsZero() {
		_ = f.into.SetAsOf(r.Name, asOf) // the set has just been added
	}
	if own != (publish.SegmentBounds{}) {
		f.into.Bounds.Of[r.Name] = own
	}
}

// checkBounds reports limits of a segment or set in the build file that contradict each other.
func checkBounds(v yamltree.Value, own *publish.SegmentBounds) {
	if own.MinUsers != nil && own.MaxUsers != nil && *own.MinUsers > *own.MaxUsers {
		v.FaultOf("min_users", "must be at most max_users, which is %d, got %d", *own.MaxUsers, *own.MinUsers)
	}
}

// The method "table" parses a table of the build file. A table is a group of input files whose rows name a segment, or
// a set if the table has the field set_prefix. The limits of a table with set_prefix apply to each set of the table.
func (f *buildFile) table(v yamltree.Value) {
	prefix := ""
	var own publish.SegmentBounds
	more := map[string]yamltree.Field{"set_prefix": text(&prefix)}
	addChangeBounds(more, &own)
	more["free_below"] = whole(func(n int64) { own.FreeBelow = uint64(n) })
	var inputs []Input
	f.inputWith(&inputs, more)(v)
	switch {
	case prefix == "" && own != publish.SegmentBounds{}:
		v.Fault("max_change, max_week_change and free_below require a table with set_prefix: " +
			"for a table of segments, set these fields in each segment")
	case prefix == "":
		f.into.Tables = append(f.into.Tables, inputs...)
	default:
		if err := checkPrefix(prefix); err != nil {
			v.FaultOf("set_prefix", "%s", err)
			return
		}
		f.into.AddSetTable(prefix, inputs...)
		if own != (publish.SegmentBounds{}) {
			f.into.Bounds.Of[prefix+"*"] = own
		}
	}
}

func (f *buildFile) definitionFields(r *Definition) map[string]yamltree.Field {
	return map[string]yamltree.Field{
		"name": text(&r.Name), "inputs": list(f.input(&r.Inputs)),
		"union": list(
			fieldNames(&r.Union),
		), "intersect": list(fieldNames(&r.Intersect)), "minus": list(fieldNames(&r.Minus)),
	}
}

// The method "input" parses one input of a build file. An input is a path, or a mapping with a path, columns and
// expectations.
func (f *buildFile) input(to *[]Input) yamltree.Field { return f.inputWith(to, nil) }

// inputWith parses an input of the build file whose mapping may have additional fields.
func (f *buildFile) inputWith(to *[]Input, more map[string]yamltree.Field) yamltree.Field {
	return func(v yamltree.Value) {
		in := f.base
		if path, ok := v.Word(); ok {
			in.Path = path
		} else {
			fields := f.columnFields(&in)
			fields["path"] = text(&in.Path)
			maps.Copy(fields, more)
			v.Fields(fields)
		}
		if in.Path == stdin && in.Expect.NewerThan > 0 {
			v.FaultOf("newer_than", "must not be used with standard input, which has no age")
		}
		switch {
		case in.Path == "":
			v.FaultOf("path", "missing")
		case in.Path != stdin && !objects.IsURL(in.Path) && !filepath.IsAbs(in.Path):
			in.Path = filepath.Join(f.folder, in.Path)
		}
		*to = append(*to, in)
	}
}

// columnFields returns the fields of the build file for the format, the columns and the minimum content of an input. If
// the build file omits a field about the format or the columns, the reader detects the setting from the input file.
func (f *buildFile) columnFields(in *Input) map[string]yamltree.Field {
	return map[string]yamltree.Field{
		"format": formatField(
			&in.Format,
		), "header": header(&in.Header), "final_newline": finalNewline(&in.FinalNewline),
		"id_column": text(&in.IDColumn), "segment_column": text(&in.SegmentColumn),
		"delimiter":  checked(func(s string) error { return in.Delimiter.UnmarshalText([]byte(s)) }),
		"quote":      checked(func(s string) error { return in.Quote.UnmarshalText([]byte(s)) }),
		"escape":     checked(func(s string) error { return in.Escape.UnmarshalText([]byte(s)) }),
		"min_files":  whole(func(n int64) { in.Expect.MinFiles = n }),
		"min_rows":   whole(func(n int64) { in.Expect.MinRows = n }),
		"newer_than": age(&in.Expect.NewerThan),
	}
}

func (f *buildFile) overlaps(v yamltree.Value) {
	switch text, ok := v.Scalar(); {
	case !ok:
	case text == "precedence":
		f.into.Precedence = true
	case text != "" && text != "error":
		v.Fault("%q: must be error or precedence", text)
	}
}

// maxBadRows returns the build file's field with the number of bad rows that the build may skip. The command-line flag
// for bad rows takes precedence over the field in the build file.
func (f *buildFile) maxBadRows() yamltree.Field {
	flag := f.into.MaxBadRows
	return checked(func(text string) error {
		tolerated, err := parseTolerance(text)
		if flag == (Tolerance{}) {
			f.into.MaxBadRows = tolerated
		}
		return err
	})
}

func (f *buildFile) allowNew(v yamltree.Value) {
	if name, ok := v.Scalar(); ok {
		f.into.Bounds.New = append(f.into.Bounds.New, name)
		f.named = append(f.named, reference{name, v})
	}
}

// The method "accept" parses an operator's approval of a change, in the form {name: opted-out, change: "-57%", reason:
// …}.
func (f *buildFile) accept(v yamltree.Value) {
	var name, change, reason string
	v.Fields(map[string]yamltree.Field{"name": text(&name), "change": text(&change), "reason": text(&reason)})
	a, err := publish.NewAcceptance(name, change, reason)
	if err != nil {
		v.Fault("%s", err)
		return
	}
	f.into.Bounds.Accept = append(f.into.Bounds.Accept, *a)
}

func (f *buildFile) allowFirst(v yamltree.Value) {
	flaw, ok := v.Scalar()
	if ok && !slices.Contains(publish.Flaws, publish.Flaw(flaw)) {
		v.Fault("%q: must be one of %v", flaw, publish.Flaws)
	}
	f.into.Bounds.AllowFirst = append(f.into.Bounds.AllowFirst, publish.Flaw(flaw))
}
