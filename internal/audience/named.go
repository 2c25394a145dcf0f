package audience

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxExpanded is the maximum number of names in an expression, after definitions have replaced the named expressions.
const MaxExpanded = 1024

// Named holds the named audience expressions of the configuration, such as the name "engaged" for "active | opened". A
// named expression may use other named expressions. The zero Named holds no expression.
type Named struct{ expanded map[string]*Expression }

// NewNamed parses and checks the named audience expressions of a configuration. The error of NewNamed joins one
// *NamedError for each faulty expression, in the order of the names.
func NewNamed(texts map[string]string) (*Named, error) {
	x := &expander{parsed: map[string]*Expression{}, done: map[string]*Expression{}, failed: map[string]bool{}}
	names := slices.Sorted(maps.Keys(texts))
	for _, name := range names {
		e, err := Parse(texts[name])
		if nameErr := checkNamed(name); nameErr != nil {
			err = nameErr
		}
		if x.parsed[name] = e; err != nil {
			x.fail(name, err)
		}
	}
	for _, name := range names {
		x.expand(name)
	}
	if len(x.faults) > 0 {
		slices.SortStableFunc(x.faults, func(a, b *NamedError) int { return strings.Compare(a.Name, b.Name) })
		return nil, joined(x.faults)
	}
	return &Named{expanded: x.done}, nil
}

func joined(faults []*NamedError) error {
	list := make([]error, len(faults))
	for i, fault := range faults {
		list[i] = fault
	}
	return errors.Join(list...)
}

// NamedError reports a fault in one named audience expression of the configuration.
type NamedError struct {
	Name string
	Err  error
}

func (e *NamedError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Err) }
func (e *NamedError) Unwrap() error { return e.Err }

// checkNamed returns an error if the configuration must not use the given name for an audience expression.
func checkNamed(name string) error {
	t, err := (&scanner{rest: name, column: 1}).next()
	switch {
	case name == All || name == Default:
		return fmt.Errorf("name %q has a fixed meaning in audience expressions: use another name", name)
	case err != nil || t.kind != nameToken || t.text != name:
		return fmt.Errorf(`must be 1 to %d letters, digits, ".", "_", "-", "/" or "+", the first a letter or digit`,
			MaxName)
	}
	return nil
}

// Names returns the names of all named expressions in ascending order. The caller owns the returned slice.
func (n *Named) Names() []string { return slices.Sorted(maps.Keys(n.of())) }

// Text returns the text of the named expression in the configuration. If the configuration has no expression with the
// name, Text returns "".
func (n *Named) Text(name string) string {
	if e := n.of()[name]; e != nil {
		return e.text
	}
	return ""
}

func (n *Named) of() map[string]*Expression {
	if n == nil {
		return nil
	}
	return n.expanded
}

// The method With returns a copy of the expression, in which definitions replace the named expressions. If the copy has
// too many names or too many nested levels, the method With returns an error.
func (e *Expression) With(named *Named) (*Expression, error) {
	return e.with(named.of())
}

func (e *Expression) with(expanded map[string]*Expression) (*Expression, error) {
	out := &Expression{text: e.text, used: map[string]int{}, named: expanded}
	names, nesting := e.root.measure(expanded, out.used)
	switch {
	case names > MaxExpanded:
		return nil, fmt.Errorf(
			"the audience expression must have at most %d names after its named expressions are expanded",
			MaxExpanded)
	case nesting > MaxNesting:
		return nil, fmt.Errorf(
			"the audience expression must have at most %d levels of nesting after its named expressions are expanded",
			MaxNesting)
	}
	out.root = e.root.replace(expanded)
	return out, nil
}

// The method "measure" counts the names and the nested levels of the node, as if definitions had replaced the named
// expressions. The method "measure" adds to the map "used" every named expression that the node uses. The count of
// names stops above MaxExpanded.
func (n *node) measure(expanded map[string]*Expression, used map[string]int) (names, nesting int) {
	if n.operator == 0 {
		e := expanded[n.name]
		if e == nil {
			return 1, 0
		}
		for name := range e.used {
			used[name] = max(used[name], 0)
		}
		if used[n.name] == 0 {
			used[n.name] = n.column
		}
		return e.root.names, e.root.nesting + 1
	}
	leftNames, leftNesting := n.left.measure(expanded, used)
	rightNames, rightNesting := n.right.measure(expanded, used)
	return min(leftNames+rightNames, MaxExpanded+1), max(leftNesting, rightNesting, n.nesting)
}

// The method "replace" returns a copy of the node, in which definitions replace the named expressions. Nodes are
// immutable, so the copy can share nodes with other expressions.
func (n *node) replace(expanded map[string]*Expression) *node {
	if n.operator == 0 {
		if e := expanded[n.name]; e != nil {
			inner := *e.root
			inner.nesting++
			return inner.in(n.name)
		}
		return n
	}
	out := join(n.operator, n.left.replace(expanded), n.right.replace(expanded))
	out.nesting = max(out.nesting, n.nesting)
	return out
}

// The method "in" returns a copy of the node for the definition of the given named expression. Each name in the copy
// stores the named expression from which the name comes, for error messages. The method "in" leaves names unchanged
// that already store a named expression.
func (n *node) in(name string) *node {
	out := *n
	if n.operator != 0 {
		out.left, out.right = n.left.in(name), n.right.in(name)
	} else if n.within == "" {
		out.within = name
	}
	return &out
}

// The type "expander" replaces named expressions by their definitions, where a named expression of the configuration
// uses another one.
type expander struct {
	parsed map[string]*Expression
	done   map[string]*Expression
	failed map[string]bool // names whose expression is faulty, or refers to a faulty expression
	faults []*NamedError
	way    []string // the names whose expansion is in progress; each name refers to the next name
}

func (x *expander) fail(name string, err error) {
	x.failed[name] = true
	x.faults = append(x.faults, &NamedError{Name: name, Err: err})
}

// The method "expand" replaces the named expressions inside one named expression by their definitions. A definition may
// also refer to named expressions, so the method "expand" first expands the definitions.
func (x *expander) expand(name string) {
	if x.done[name] != nil || x.failed[name] {
		return
	}
	x.way = append(x.way, name)
	defer func() { x.way = x.way[:len(x.way)-1] }()
	for _, below := range x.parsed[name].root.leaves(nil) {
		if x.parsed[below] == nil {
			continue
		}
		if i := slices.Index(x.way, below); i >= 0 {
			x.fail(below, fmt.Errorf("%s refers to itself: %s", below,
				strings.Join(append(slices.Clone(x.way[i:]), below), " → ")))
		} else {
			x.expand(below)
		}
		if x.failed[below] {
			x.failed[name] = true
			return
		}
	}
	e, err := x.parsed[name].with(x.done)
	if err != nil {
		x.fail(name, err)
		return
	}
	x.done[name] = e
}

// The method "leaves" appends all names in the node, and in the nodes below the node, to the slice "names".
func (n *node) leaves(names []string) []string {
	if n.operator == 0 {
		return append(names, n.name)
	}
	return n.right.leaves(n.left.leaves(names))
}
