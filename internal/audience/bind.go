package audience

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"capper/internal/bitmap"
	"capper/internal/segments"
)

// UnknownError reports that an audience expression contains an unknown name: the generation (published version) has no
// segment and no set with this name.
type UnknownError struct {
	Name       string
	Column     int    // column in the caller's expression; 0: the name is in an expression of the configuration
	Within     string // the expression of the configuration that contains the name; "": the caller's expression
	Generation string
	Nearest    string   // the name that the caller probably meant; "": no name is similar
	Apart      []string // the names that result from spaces around each "-"; nil: not all of these names exist
}

func (e *UnknownError) Error() string {
	text := place(e.Column, e.Within) + fmt.Sprintf("generation %s has no segment or set %q", e.Generation, e.Name)
	switch {
	case e.Apart != nil:
		return text + fmt.Sprintf(": a name may contain \"-\", so put spaces around the operator: %s",
			strings.Join(e.Apart, " - "))
	case e.Nearest != "":
		return text + fmt.Sprintf("; the nearest is %q", e.Nearest)
	}
	return text
}

// AmbiguousError reports that a name in an audience expression has two meanings, for example because a segment and a
// set have this name.
type AmbiguousError struct {
	Name       string
	Column     int    // column in the caller's expression; 0: the name is in an expression of the configuration
	Within     string // name of the expression of the configuration that contains the name, if known
	Generation string
	Also       string // the second meaning of the name; the first meaning is a segment or a set of the generation
}

func (e *AmbiguousError) Error() string {
	return place(e.Column, e.Within) + fmt.Sprintf("%q is %s and also the name of a segment or set of generation %s",
		e.Name, e.Also, e.Generation)
}

// Position returns the column of the fault that an error of Parse or Bind reports, or 0 if the error concerns the
// whole expression. If the fault of the expression is an unknown name, Position also returns the nearest known name.
func Position(err error) (column int, nearest string) {
	var syntax *SyntaxError
	var bound *BoundError
	var unknown *UnknownError
	var ambiguous *AmbiguousError
	switch {
	case errors.As(err, &syntax):
		column = syntax.Column
	case errors.As(err, &bound):
		column = bound.Column
	case errors.As(err, &unknown):
		column, nearest = unknown.Column, unknown.Nearest
	case errors.As(err, &ambiguous):
		column = ambiguous.Column
	}
	return column, nearest
}

// The function "place" returns the beginning of an error message: the place of the faulty name in the expression.
func place(column int, within string) string {
	if within != "" {
		return fmt.Sprintf("in %s of the configuration: ", within)
	}
	if column == 0 {
		return ""
	}
	return fmt.Sprintf("column %d: ", column)
}

// The type "names" maps the names in audience expressions to the segments and sets of one generation (published
// version).
type names struct {
	*segments.Snapshot
	codes map[string]uint8 // code of each segment in the snapshot's CodeMap
	named map[string]*Expression
}

func namesOf(s *segments.Snapshot, named map[string]*Expression) *names {
	n := &names{Snapshot: s, codes: map[string]uint8{}, named: named}
	for i, name := range s.Names() {
		n.codes[name] = uint8(i + 1)
	}
	return n
}

// The method "has" reports whether the generation (published version) has a segment or a set with the given name.
func (n *names) has(name string) bool { return n.codes[name] != 0 || n.Set(name) != nil }

// The method "bind" checks that each name of the expression has exactly one meaning, and returns the evaluation plan of
// the expression.
func (n *names) bind(e *Expression) (*plan, error) {
	for _, name := range slices.Sorted(maps.Keys(e.used)) {
		if n.has(name) {
			return nil, &AmbiguousError{Name: name, Column: e.used[name], Generation: n.Generation(),
				Also: "an expression of the configuration"}
		}
	}
	return n.plan(e.root)
}

func (n *names) plan(of *node) (*plan, error) {
	if of.operator == 0 {
		return n.leaf(of)
	}
	left, err := n.plan(of.left)
	if err != nil {
		return nil, err
	}
	right, err := n.plan(of.right)
	if err != nil {
		return nil, err
	}
	return &plan{operator: of.operator, left: left, right: right, words: max(left.words, right.words+1)}, nil
}

// The method "leaf" returns the evaluation plan for a single name in an expression.
func (n *names) leaf(of *node) (*plan, error) {
	leaf := &plan{words: 1}
	switch {
	case of.name == All || of.name == Default:
		if n.has(of.name) {
			return nil, &AmbiguousError{Name: of.name, Column: of.ownColumn(), Within: of.within,
				Generation: n.Generation(), Also: "a reserved name of expressions"}
		}
		leaf.load = n.everybody(of.name == All)
	case n.codes[of.name] != 0:
		code, codes := n.codes[of.name], n.Codes()
		leaf.load = func(key int, w *bitmap.Words) bitmap.Extent { return codes.Load(code, key, w) }
	case n.Set(of.name) != nil:
		leaf.load = n.Set(of.name).Load
	default:
		return nil, n.unknown(of)
	}
	return leaf, nil
}

// The method "everybody" returns a function that finds, in one block of 65,536 neighbouring users, the users who are in
// a set and in no segment. If the argument "segmented" is true, the returned function also loads the users who are in a
// segment.
func (n *names) everybody(segmented bool) func(key int, w *bitmap.Words) bitmap.Extent {
	if !segmented {
		return func(key int, w *bitmap.Words) bitmap.Extent { return n.Unsegmented().Load(key, w) }
	}
	codes := n.Codes()
	return func(key int, w *bitmap.Words) bitmap.Extent {
		extent := codes.LoadAny(key, w)
		switch extent {
		case bitmap.Nothing:
			return n.Unsegmented().Load(key, w)
		case bitmap.Some:
			n.Unsegmented().Add(key, w)
			return w.Extent()
		default:
			return extent
		}
	}
}

// ownColumn returns the column of a name in the caller's expression. If the name comes from a named expression of the
// configuration, ownColumn returns 0.
func (n *node) ownColumn() int {
	if n.within != "" {
		return 0
	}
	return n.column
}

func (n *names) unknown(of *node) error {
	e := &UnknownError{Name: of.name, Column: of.ownColumn(), Within: of.within, Generation: n.Generation(),
		Apart: n.apart(of.name)}
	if e.Apart == nil {
		e.Nearest = Nearest(of.name, n.all())
	}
	return e
}

// The method "apart" splits a name such as "a-b" at "-" characters into names that an expression may use. If a part
// would be an unknown name, the method "apart" returns nil.
func (n *names) apart(name string) []string {
	ways := map[int][]string{} // key: the position at which the split-off names begin
	for from := len(name) - 1; from >= 0; from-- {
		if from > 0 && name[from-1] != '-' {
			continue
		}
		if n.means(name[from:]) {
			ways[from] = []string{name[from:]}
			continue
		}
		for to := from; to < len(name) && ways[from] == nil; to++ {
			if name[to] == '-' && ways[to+1] != nil && n.means(name[from:to]) {
				ways[from] = append([]string{name[from:to]}, ways[to+1]...)
			}
		}
	}
	return ways[0]
}

// The method "means" reports whether the given name has a meaning in audience expressions: a segment, a set, a named
// expression, "all" or "default".
func (n *names) means(name string) bool {
	return n.has(name) || n.named[name] != nil || name == All || name == Default
}

// The method "all" returns every name that an audience expression may use. The names "all" and "default" come first,
// followed by the names from the configuration. The names of the generation's segments and sets come last, in the order
// of the manifest.
func (n *names) all() []string {
	list := append([]string{All, Default}, slices.Sorted(maps.Keys(n.named))...)
	list = append(list, n.Names()...)
	for _, set := range n.Sets() {
		list = append(list, set.Name)
	}
	return list
}
