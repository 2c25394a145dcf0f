package yamltree

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// A Value is a value of a YAML document, together with its position. If a value is unexpected, the methods of Value and
// the Fields of package yamltree record an error and leave the target variable unchanged. Because the methods record
// errors and continue, one walk through a YAML document finds all errors.
type Value struct {
	path string // such as limits.segments.vip[2].window; "" for the root
	node ast.Node
	doc  *document
}

// A Field is a function that reads a YAML value and stores the result in a variable. The caller passes the variable to
// the function that makes the Field, such as Text or Int.
type Field = func(Value)

// A document holds the data that all values of a YAML document share.
type document struct {
	faults  []Fault
	anchors map[string]ast.Node
}

// Root returns the root of the only YAML document in the text. The function Root accepts repeated keys, because the
// later walk through the values finds them together with other errors. The error is a *Fault.
func Root(text []byte) (Value, error) {
	root, err := Parse(text, parser.AllowDuplicateMapKey())
	if err != nil {
		return Value{}, err
	}
	return Value{"", root, &document{anchors: map[string]ast.Node{}}}.resolve(), nil
}

// Faults returns the errors that were recorded for the whole document.
func (v Value) Faults() []Fault { return v.doc.faults }

// Path returns the path of the value in the document, such as limits.segments.vip[2].window.
func (v Value) Path() string { return v.path }

// The method Absent returns a Value, with the given path, for a key that the document does not contain.
func (v Value) Absent(path string) Value { return Value{path, nil, v.doc} }

// The method Fault records an error at the position of the value. The arguments of Fault are a format string and its
// values. The resulting text contains the broken rule and the actual value.
func (v Value) Fault(format string, args ...any) {
	f := Fault{Path: v.path, Rule: fmt.Sprintf(format, args...)}
	f.Line, f.Column = Position(v.node)
	v.doc.faults = append(v.doc.faults, f)
}

// FaultOf records an error at a key of a YAML mapping, or at a nested key such as redis.addrs. If the mapping lacks
// the key, the error has the position of the mapping.
func (v Value) FaultOf(key, format string, args ...any) {
	at := v.child(key, nil)
	v.Key(key, func(own Value) { at = own })
	if at.node == nil {
		at.node = v.node
	}
	at.Fault(format, args...)
}

// The method "resolve" replaces YAML anchors and aliases by the nodes that they mean.
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

// IsNull reports whether the value is absent or null.
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

// Describe returns a description of the value for error messages.
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

// The method Leaves returns all scalars (texts, numbers and booleans) in the value, by their paths.
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
