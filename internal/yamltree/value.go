package yamltree

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Value is a value of a document, and where it stands. Its methods, and the
// fields that this package offers, note a fault and leave their target alone
// when the value is not what they ask for, so that one walk finds all faults.
type Value struct {
	path string // such as limits.segments.vip[2].window; "" for the root
	node ast.Node
	doc  *document
}

// Field reads a value into what it was made for.
type Field = func(Value)

// document is what the values of one document share.
type document struct {
	faults  []Fault
	anchors map[string]ast.Node
}

// Root is the root of the one document that the text must hold. Repeated keys
// are found by the walk, with the other faults. The error is a *Fault.
func Root(text []byte) (Value, error) {
	root, err := Parse(text, parser.AllowDuplicateMapKey())
	if err != nil {
		return Value{}, err
	}
	return Value{"", root, &document{anchors: map[string]ast.Node{}}}.resolve(), nil
}

// Faults are those that the values of the document have noted so far.
func (v Value) Faults() []Fault { return v.doc.faults }

// Path is where the value stands, such as limits.segments.vip[2].window.
func (v Value) Path() string { return v.path }

// Absent is what stands nowhere: the value of a key that the document lacks.
func (v Value) Absent(path string) Value { return Value{path, nil, v.doc} }

// Fault notes what must hold of the value, and what was found instead.
func (v Value) Fault(format string, args ...any) {
	f := Fault{Path: v.path, Rule: fmt.Sprintf(format, args...)}
	f.Line, f.Column = Position(v.node)
	v.doc.faults = append(v.doc.faults, f)
}

// FaultOf notes a fault of a key that the value, a mapping, has or lacks, or of
// one further down (redis.addrs), which is noted where the mapping stands.
func (v Value) FaultOf(key, format string, args ...any) {
	at := v.child(key, nil)
	v.Key(key, func(own Value) { at = own })
	if at.node == nil {
		at.node = v.node
	}
	at.Fault(format, args...)
}

// resolve follows anchors and aliases to the node that they stand for.
func (v Value) resolve() Value {
	switch n := v.node.(type) {
	case *ast.AnchorNode:
		v.doc.anchors[n.Name.GetToken().Value] = n.Value
		v.node = n.Value
		return v.resolve()
	case *ast.AliasNode:
		target, ok := v.doc.anchors[n.Value.GetToken().Value]
		if !ok {
			v.Fault("alias *%s: no earlier anchor has this name", n.Value.GetToken().Value)
			return v
		}
		return Value{v.path, target, v.doc}.resolve()
	case *ast.TagNode:
		v.Fault("tags such as %s are not supported", n.GetToken().Value)
	}
	return v
}

func (v Value) child(key string, node ast.Node) Value {
	path := key
	if strings.ContainsFunc(key, unicode.IsControl) {
		path = strconv.Quote(key)
	}
	if v.path != "" {
		path = v.path + "." + path
	}
	return Value{path, node, v.doc}.resolve()
}

// IsNull reports whether there is nothing.
func (v Value) IsNull() bool {
	_, null := v.node.(*ast.NullNode)
	return null || v.node == nil
}

// IsList reports whether the value is a list.
func (v Value) IsList() bool {
	_, ok := v.node.(*ast.SequenceNode)
	return ok
}

// IsMapping reports whether the value is a mapping.
func (v Value) IsMapping() bool {
	switch v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

// Describe is the value as faults show it.
func (v Value) Describe() string {
	switch n := v.node.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.StringNode:
		return strconv.Quote(n.Value)
	default:
		return n.GetToken().Value
	}
}

// Leaves are the scalars of the value by path.
func (v Value) Leaves() map[string]string {
	leaves := map[string]string{}
	v.leaves(leaves)
	return leaves
}

func (v Value) leaves(into map[string]string) {
	switch n := v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		v.Pairs(func(_ string, _, val Value) { val.leaves(into) })
	case *ast.SequenceNode:
		v.List(func(v Value) { v.leaves(into) })
	case nil:
	case *ast.LiteralNode:
		into[v.path] = n.Value.Value
	default:
		into[v.path] = n.GetToken().Value
	}
}
