package build

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"capper/internal/objects"
	"capper/internal/segments/ingest"
	"capper/internal/segments/ingest/delimited"
	"capper/internal/yamltree"
)

// document is a build file. Relative paths in it start at its folder.
type document struct {
	Segments []recipe `yaml:"segments"` // in order of precedence
	Sets     []recipe `yaml:"sets"`
	Tables   []input  `yaml:"tables"`
	// Overlaps: "error" (default) or "precedence": users in several segments stay in the first.
	Overlaps string `yaml:"overlaps"`
	// MaxBadRows is a number or a share such as 0.1%. It and Header are checked by hand: the library would make 3 of 3.7.
	MaxBadRows any      `yaml:"max_bad_rows"`
	Defaults   defaults `yaml:"defaults"` // of all inputs
	General    Bounds   `yaml:",inline"`
	AllowNew   []string `yaml:"allow_new"`
	AllowFirst []string `yaml:"allow_first"`
}

type recipe struct {
	Name      string    `yaml:"name"`
	Own       OwnBounds `yaml:",inline"`
	Inputs    []input   `yaml:"inputs"`
	Union     []string  `yaml:"union"`
	Intersect []string  `yaml:"intersect"`
	Minus     []string  `yaml:"minus"`
}

// Columns says how a file is to be read; what is left out is found out. It is
// exported because the YAML library sets no embedded field otherwise.
type Columns struct {
	Format        string `yaml:"format"`
	Header        any    `yaml:"header"`
	IDColumn      string `yaml:"id_column"`
	SegmentColumn string `yaml:"segment_column"`
	Delimiter     string `yaml:"delimiter"`
	Quote         string `yaml:"quote"`
	Escape        string `yaml:"escape"`
	FinalNewline  string `yaml:"final_newline"`
}

// input is a path alone, or a path with columns and expectations.
type input struct {
	Path    string `yaml:"path"`
	Columns `yaml:",inline"`
	Expect  `yaml:",inline"`
}

type defaults struct {
	Columns `yaml:",inline"`
	Expect  `yaml:",inline"`
}

// UnmarshalYAML accepts a string or a mapping. Strictness is not inherited by
// custom decoders, so it is asked for again.
func (in *input) UnmarshalYAML(node ast.Node) error {
	if node.Type() != ast.MappingType && node.Type() != ast.MappingValueType {
		return yaml.NodeToValue(node, &in.Path)
	}
	type mapping input
	return yaml.NodeToValue(node, (*mapping)(in), yaml.Strict())
}

// Load reads a build file into a plan. base holds the defaults of all inputs,
// which the file's own go over; into brings what the flags say.
func Load(path string, base ingest.Input, into *Plan) (*Plan, error) {
	raw, err := yamltree.ReadFile(path)
	if err != nil {
		return nil, err
	}
	plan, err := parse(raw, filepath.Dir(path), base, into)
	var wrong *faults
	if errors.As(err, &wrong) {
		wrong.file = path
	}
	return plan, err
}

func parse(raw []byte, folder string, base ingest.Input, into *Plan) (*Plan, error) {
	root, err := yamltree.Parse(raw)
	if err != nil {
		return nil, &faults{list: []*yamltree.Fault{yamltree.Explain(err)}}
	}
	var d document
	if err := yaml.NodeToValue(root, &d, yaml.Strict()); err != nil {
		return nil, &faults{list: []*yamltree.Fault{yamltree.Explain(err)}}
	}
	c := &converter{folder: folder, root: root}
	base = c.apply(base, d.Defaults.Columns, "defaults")
	base.Expect = c.expect(base.Expect, d.Defaults.Expect, "defaults")
	into.Segments = c.recipes(d.Segments, base, "segments")
	into.Sets = c.recipes(d.Sets, base, "sets")
	into.Tables = c.inputs(d.Tables, base, "tables")
	switch d.Overlaps {
	case "", "error":
	case "precedence":
		into.Precedence = true
	default:
		c.fault("overlaps: %q is neither error nor precedence", d.Overlaps)
	}
	if d.MaxBadRows != nil {
		tolerated, err := ingest.ParseTolerance(fmt.Sprint(d.MaxBadRows))
		if err != nil {
			c.fault("max_bad_rows: %w", err)
		}
		if into.MaxBadRows == (ingest.Tolerance{}) { // a flag goes over the file
			into.MaxBadRows = tolerated
		}
	}
	c.bounds(&d, into)
	if len(c.faults) > 0 {
		return nil, &faults{list: c.faults}
	}
	return into, nil
}

// faults is everything that is wrong with a build file, a line each.
type faults struct {
	file string
	list []*yamltree.Fault
}

func (f *faults) Error() string {
	var lines []string
	for _, err := range f.list {
		lines = append(lines, err.In(f.file))
	}
	return strings.Join(lines, "\n")
}

// converter turns the file's form into the plan's, and collects the faults.
type converter struct {
	folder string
	root   ast.Node
	faults []*yamltree.Fault
}

// fault notes a fault; its text begins with the path of what is wrong, and a colon.
func (c *converter) fault(format string, args ...any) {
	f := &yamltree.Fault{Rule: fmt.Errorf(format, args...).Error()}
	at, _, _ := strings.Cut(f.Rule, ":")
	f.Line, f.Column = c.position(at)
	c.faults = append(c.faults, f)
}

// position is where a path such as segments[0].inputs[1].format stands; of what is
// missing, where that stands which should have it.
func (c *converter) position(at string) (line, column int) {
	for at != "" {
		if path, err := yaml.PathString("$." + at); err == nil {
			if node, err := path.FilterNode(c.root); err == nil && node != nil {
				return yamltree.Position(node)
			}
		}
		at = at[:max(0, strings.LastIndexAny(at, ".["))]
	}
	return yamltree.Position(c.root)
}

func (c *converter) recipes(list []recipe, base ingest.Input, where string) []Recipe {
	var recipes []Recipe
	for i, r := range list {
		at := fmt.Sprintf("%s[%d]", where, i)
		recipes = append(recipes, Recipe{
			Name: r.Name, Inputs: c.inputs(r.Inputs, base, at+".inputs"),
			Union: r.Union, Intersect: r.Intersect, Minus: r.Minus,
		})
	}
	return recipes
}

func (c *converter) inputs(list []input, base ingest.Input, where string) []ingest.Input {
	var inputs []ingest.Input
	for i, in := range list {
		at := fmt.Sprintf("%s[%d]", where, i)
		converted := c.apply(base, in.Columns, at)
		converted.Expect = c.expect(base.Expect, in.Expect, at)
		converted.Path = in.Path
		if in.Path == ingest.Stdin && converted.Expect.NewerThan > 0 {
			c.fault("%s.newer_than: standard input has no age", at)
		}
		switch {
		case in.Path == "":
			c.fault("%s.path: missing", at)
		case in.Path != ingest.Stdin && !objects.IsURL(in.Path) && !filepath.IsAbs(in.Path):
			converted.Path = filepath.Join(c.folder, in.Path)
		}
		inputs = append(inputs, converted)
	}
	return inputs
}

func (c *converter) apply(base ingest.Input, own Columns, where string) ingest.Input {
	if own.Format != "" {
		base.Format = ingest.Format(own.Format)
		if !base.Format.Known() {
			c.fault("%s.format: %q is none of %v", where, own.Format, ingest.Formats)
		}
	}
	switch own.Header {
	case nil:
	case true:
		base.Header = delimited.HeaderYes
	case false:
		base.Header = delimited.HeaderNo
	default:
		c.fault("%s.header: must be true or false, got %v", where, own.Header)
	}
	if own.FinalNewline != "" {
		base.FinalNewline = ingest.FinalNewline(own.FinalNewline)
		if !base.FinalNewline.Known() {
			c.fault("%s.final_newline: must be required or optional, got %q", where, own.FinalNewline)
		}
	}
	if own.IDColumn != "" {
		base.IDColumn = own.IDColumn
	}
	if own.SegmentColumn != "" {
		base.SegmentColumn = own.SegmentColumn
	}
	if own.Delimiter != "" {
		if err := base.SetDelimiter(own.Delimiter); err != nil {
			c.fault("%s.delimiter: %w", where, err)
		}
	}
	c.mark(&base.Quote, own.Quote, where+".quote")
	c.mark(&base.Escape, own.Escape, where+".escape")
	return base
}

func (c *converter) mark(into *delimited.Mark, own, where string) {
	if own == "" {
		return
	}
	mark, err := delimited.ParseMark(own)
	if err != nil {
		c.fault("%s: %w", where, err)
	}
	*into = mark
}
