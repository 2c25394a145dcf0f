package yamltree

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// The method Pairs calls the argument "each" (a function) for every key of a YAML mapping, in order, and reports
// whether the value is a mapping. The keys of the mapping must be plain strings, and no key may occur twice.
func (v Value) Pairs(each func(key string, at Value, val Value)) bool {
	return v.pairs(each, func(at, _ Value) { at.Fault("merge keys are not supported") })
}

// The method "pairs" calls the argument "merge" (a function) for the merge keys (<<) of a YAML mapping, and the
// argument "each" for all other keys.
func (v Value) pairs(each func(key string, at Value, val Value), merge func(at, val Value)) bool {
	var values []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		v.Fault("must be a mapping, got %s", v.Describe())
		return false
	}
	seen := map[string]bool{}
	for _, pair := range values {
		key := pair.Key.GetToken().Value
		at := Value{v.child(key, nil).path, pair.Key, v.doc}
		switch {
		case pair.Key.IsMergeKey():
			merge(at, Value{v.path, pair.Value, v.doc}.resolve())
		case seen[key]:
			at.Fault("is given twice")
		default:
			seen[key] = true
			each(key, at, v.child(key, pair.Value))
		}
	}
	return true
}

// The method Fields reads a YAML mapping with known keys. The method Fields differs from Object in two ways. If a key
// has no value, Fields treats the key as absent. The method Fields also accepts merge keys (<<), which add values for
// keys that the mapping itself does not set.
func (v Value) Fields(fields map[string]Field) { v.fields(fields, map[string]bool{}) }

func (v Value) fields(fields map[string]Field, given map[string]bool) {
	var merged []Value
	v.pairs(func(key string, at, val Value) {
		read, ok := fields[key]
		switch {
		case given[key]: // the enclosing mapping has set this key
		case !ok:
			at.Fault("is not a known key%s", suggestion(key, slices.Sorted(maps.Keys(fields))))
		default:
			given[key] = true
			if !val.IsNull() {
				read(val)
			}
		}
	}, func(_, val Value) { merged = append(merged, val) })
	for _, m := range merged {
		m.fields(fields, given)
	}
}

// The method Object reads a YAML mapping with known keys and returns the keys that were present. For a misspelt key,
// the result also contains the correct key, so that one mistake causes only one error. For other unknown keys, the
// texts in the argument "advice" follow the list of known keys.
func (v Value) Object(fields map[string]Field, advice ...string) (given map[string]bool) {
	return v.object(fields, func(string) string { return "" }, advice...)
}

// The method Top reads the outermost YAML mapping of a file like Object. For an unknown key, Top calls the function
// "home". If the key belongs to another mapping of the file, this function returns the key's path, such as
// "server.listen", and otherwise "".
func (v Value) Top(fields map[string]Field, home func(key string) string) (given map[string]bool) {
	return v.object(fields, home)
}

func (v Value) object(fields map[string]Field, home func(string) string, advice ...string) (given map[string]bool) {
	given = map[string]bool{}
	v.Pairs(func(key string, at, val Value) {
		read, ok := fields[key]
		if !ok {
			known := slices.Sorted(maps.Keys(fields))
			if k := meant(key, known); k != "" {
				given[k] = true
			} else if path := home(key); path != "" {
				at.Fault("is not a known key here; did you mean %q?", path)
				return
			}
			at.Fault("is not a known key%s", suggestion(key, known, advice...))
			return
		}
		given[key] = true
		if !val.IsNull() {
			read(val)
			return
		}
		at.Fault("must have a value")
	})
	return given
}

// The method Key reads one key of a YAML mapping that Object or Pairs has already checked.
func (v Value) Key(wanted string, read Field) {
	var values []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	}
	for _, pair := range values {
		if pair.Key.GetToken().Value == wanted {
			if val := v.child(wanted, pair.Value); !val.IsNull() {
				read(val)
			}
			return
		}
	}
}

// The method List calls the argument "each" (a function) for every element of a YAML list.
func (v Value) List(each Field) {
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		v.Fault("must be a list, got %s", v.Describe())
		return
	}
	for i, element := range n.Values {
		each(Value{fmt.Sprintf("%s[%d]", v.path, i), unsplit(element), v.doc}.resolve())
	}
}

// The function "unsplit" corrects the effect of a bug in the YAML library's parser. In a list in brackets, the parser
// of the YAML library reads the plain scalar "host:7000" as a mapping from "host" to 7000.
func unsplit(element ast.Node) ast.Node {
	pair, ok := element.(*ast.MappingValueNode)
	if m, isMapping := element.(*ast.MappingNode); isMapping && len(m.Values) == 1 {
		pair, ok = m.Values[0], true
	}
	if !ok || pair.Value == nil {
		return element
	}
	key, val := pair.Key.GetToken(), pair.Value.GetToken()
	adjacent := val.Position.Line == key.Position.Line && val.Position.Column == key.Position.Column+len(key.Value)+1
	if _, scalar := pair.Value.(ast.ScalarNode); !scalar || !adjacent {
		return element
	}
	whole := key.Clone()
	whole.Value = key.Value + ":" + val.Value
	return &ast.StringNode{BaseNode: &ast.BaseNode{}, Token: whole, Value: whole.Value}
}

func suggestion(key string, known []string, advice ...string) string {
	if k := meant(key, known); k != "" {
		return fmt.Sprintf("; did you mean %q?", k)
	}
	return strings.Join(append([]string{"; known are " + strings.Join(known, ", ")}, advice...), "; ")
}

// The function "meant" returns the known key that is similar to a misspelt key, or "" if there is no such key.
func meant(key string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, key) || closeTo(k, key) {
			return k
		}
	}
	return ""
}

// closeTo reports whether a single edit changes the text a to the text b: a replaced, missing or added letter, or two
// swapped adjacent letters.
func closeTo(a, b string) bool {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(a)-len(b) > 1 {
		return false
	}
	i := 0
	for i < len(b) && a[i] == b[i] {
		i++
	}
	if len(a) > len(b) {
		return a[i+1:] == b[i:]
	}
	return i == len(b) || a[i+1:] == b[i+1:] ||
		i+1 < len(b) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
