package audience

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxExpanded is how many names an expression may have once names that stand for
// expressions are replaced.
const MaxExpanded = 1024

// Named is expressions of the configuration by name, such as engaged: active | opened.
// They may be made from each other. The zero value has none.
type Named struct{ expanded map[string]*Expression }

// NewNamed reads and checks expressions by name. The error joins one for each name
// that has a fault, in the order of the names; each is a *NamedError.
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

// NamedError is the fault of one expression of the configuration.
type NamedError struct {
	Name string
	Err  error
}

func (e *NamedError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Err) }
func (e *NamedError) Unwrap() error { return e.Err }

// checkNamed says why a name cannot be that of an expression.
func checkNamed(name string) error {
	t, err := (&scanner{rest: name, column: 1}).next()
	switch {
	case name == All || name == Default:
		return fmt.Errorf("name %q is reserved for expressions", name)
	case err != nil || t.kind != nameToken || t.text != name:
		return fmt.Errorf(`must be 1 to %d letters, digits, ".", "_", "-", "/" or "+", the first a letter or digit`,
			MaxName)
	}
	return nil
}

// Names lists the names in ascending order. The slice is the caller's.
func (n *Named) Names() []string { return slices.Sorted(maps.Keys(n.of())) }

// Text is the expression of a name as it was given, "" where there is none.
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

// With replaces the names that stand for expressions. The error says that it has too many
// names then, or too many levels.
func (e *Expression) With(named *Named) (*Expression, error) {
	return e.with(named.of())
}

func (e *Expression) with(expanded map[string]*Expression) (*Expression, error) {
	out := &Expression{text: e.text, used: map[string]int{}, named: expanded}
	names, nesting := e.root.measure(expanded, out.used)
	switch {
	case names > MaxExpanded:
		return nil, fmt.Errorf("the expression, with named expressions expanded, has more than %d names", MaxExpanded)
	case nesting > MaxNesting:
		return nil, fmt.Errorf("the expression, with named expressions expanded, has more than %d levels", MaxNesting)
	}
	out.root = e.root.replace(expanded)
	return out, nil
}

// measure counts the names and levels that a node has once it is expanded, before anything
// is, and notes in used what it is made from. Counts stop to grow beyond the bounds.
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

// replace is the node with what its names stand for, which is shared with others: nodes do not change.
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

// in notes that names are those of an expression of the configuration, where it is not known yet.
func (n *node) in(name string) *node {
	out := *n
	if n.operator != 0 {
		out.left, out.right = n.left.in(name), n.right.in(name)
	} else if n.within == "" {
		out.within = name
	}
	return &out
}

// expander expands the expressions of a configuration, each once.
type expander struct {
	parsed map[string]*Expression
	done   map[string]*Expression
	failed map[string]bool // what has a fault, or is made from what has one
	faults []*NamedError
	way    []string // the names that are being expanded, each for the one before
}

func (x *expander) fail(name string, err error) {
	x.failed[name] = true
	x.faults = append(x.faults, &NamedError{Name: name, Err: err})
}

// expand expands one expression, after those that it is made from.
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

// leaves appends the names of a node.
func (n *node) leaves(names []string) []string {
	if n.operator == 0 {
		return append(names, n.name)
	}
	return n.right.leaves(n.left.leaves(names))
}
