package yamltree

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// The method Canonical returns a text of the YAML value that does not depend on comments, layout, quotes and anchors.
// The argument "own" is a function that can remove a value, by returning "" and true, or replace the value by a text.
// The method Canonical also removes a mapping or list if the function "own" has removed all of its elements.
func (v Value) Canonical(own func(Value) (as string, taken bool)) string {
	text, _ := v.canonical(own)
	return text
}

func (v Value) canonical(own func(Value) (string, bool)) (text string, left bool) {
	if as, taken := own(v); taken {
		return strconv.Quote(as), as != ""
	}
	switch n := v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return join('{', '}', func(add func(part string, left bool)) {
			v.Pairs(func(key string, _, val Value) {
				part, left := val.canonical(own)
				add(strconv.Quote(key)+":"+part, left)
			})
		})
	case *ast.SequenceNode:
		return join('[', ']', func(add func(string, bool)) {
			v.List(func(v Value) { add(v.canonical(own)) })
		})
	case nil, *ast.NullNode:
		return "null", true
	case *ast.StringNode:
		return strconv.Quote(n.Value), true
	case *ast.LiteralNode:
		return strconv.Quote(n.Value.Value), true
	default:
		return fmt.Sprint(n.Type(), n.GetToken().Value), true
	}
}

// The function "join" joins the parts of a list or mapping that were not removed, in order. If the list or mapping had
// parts and all of them were removed, the result "left" is false.
func join(open, end byte, parts func(add func(part string, left bool))) (text string, left bool) {
	var list []string
	all := 0
	parts(func(part string, left bool) {
		all++
		if left {
			list = append(list, part)
		}
	})
	return string(open) + strings.Join(list, ",") + string(end), all == 0 || len(list) > 0
}

// YAML returns the value as YAML without comments, anchors and aliases. In the returned text, a mapping has one line
// for each key, with the given indentation. The text has quotes around every string, so that every YAML parser reads
// the value as a string.
func (v Value) YAML(indent string) string {
	lines := ""
	if v.IsMapping() {
		v.Pairs(func(key string, _, val Value) {
			lines += "\n" + indent + quoted(key) + ": " + val.YAML(indent+"  ")
		})
	}
	if lines != "" {
		return lines
	}
	return v.flow()
}

// The method "flow" returns the value as YAML on one line.
func (v Value) flow() string {
	var parts []string
	switch n := v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		v.Pairs(func(key string, _, val Value) { parts = append(parts, quoted(key)+": "+val.flow()) })
		return "{" + strings.Join(parts, ", ") + "}"
	case *ast.SequenceNode:
		v.List(func(v Value) { parts = append(parts, v.flow()) })
		return "[" + strings.Join(parts, ", ") + "]"
	case nil, *ast.NullNode:
		return "null"
	case *ast.StringNode:
		return quoted(n.Value)
	case *ast.LiteralNode:
		return quoted(n.Value.Value)
	default:
		return n.GetToken().Value
	}
}

// The function "quoted" returns a text in double quotes according to the rules of JSON, which are also valid in YAML.
func quoted(text string) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // encoding a string never fails
	return strings.TrimSpace(out.String())
}
