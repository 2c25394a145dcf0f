package yamltree

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Canonical is the value in a form that comments, layout, quotes and anchors do not change. own may take a value
// out by its path (as is "" then), or have a text stand for it. A mapping or list of which nothing is left is taken out
// too.
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

// join writes the parts that are left, in their order. left: there are some, or there were none from the beginning.
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
