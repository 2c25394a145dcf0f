package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"

	"capper/internal/capping"
	"capper/internal/yamltree"
)

// value is a node of the syntax tree with its path. Its methods note a fault
// and leave the target alone when the node is not what they ask for.
type value struct {
	path   string
	node   ast.Node
	reader *reader
}

// reader collects the faults of one file, and resolves its anchors.
type reader struct {
	faults  []Fault
	places  []place
	anchors map[string]ast.Node
}

// field reads one key of a mapping.
type field = func(value)

func (v value) fault(format string, args ...any) {
	f := Fault{Path: v.path, Rule: fmt.Sprintf(format, args...)}
	f.Line, f.Column = yamltree.Position(v.node)
	v.reader.faults = append(v.reader.faults, f)
}

// resolve follows anchors and aliases to the node that they stand for.
func (v value) resolve() value {
	switch n := v.node.(type) {
	case *ast.AnchorNode:
		v.reader.anchors[n.Name.GetToken().Value] = n.Value
		v.node = n.Value
		return v.resolve()
	case *ast.AliasNode:
		target, ok := v.reader.anchors[n.Value.GetToken().Value]
		if !ok {
			v.fault("alias *%s names no anchor before it", n.Value.GetToken().Value)
			return v
		}
		return value{v.path, target, v.reader}.resolve()
	case *ast.TagNode:
		v.fault("tags such as %s are not supported", n.GetToken().Value)
	}
	return v
}

func (v value) child(key string, node ast.Node) value {
	path := key
	if strings.ContainsFunc(key, unicode.IsControl) {
		path = strconv.Quote(key)
	}
	if v.path != "" {
		path = v.path + "." + path
	}
	return value{path, node, v.reader}.resolve()
}

// pairs calls each for the keys of a mapping, in order. It reports whether
// the value is a mapping. Keys must be plain strings, and not repeat.
func (v value) pairs(each func(key string, keyNode value, val value)) bool {
	var values []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		v.fault("must be a mapping, got %s", v.describe())
		return false
	}
	seen := map[string]bool{}
	for _, pair := range values {
		key := pair.Key.GetToken().Value
		at := value{v.child(key, nil).path, pair.Key, v.reader}
		switch {
		case pair.Key.IsMergeKey():
			at.fault("merge keys are not supported")
		case seen[key]:
			at.fault("is given twice")
		default:
			seen[key] = true
			each(key, at, v.child(key, pair.Value))
		}
	}
	return true
}

// object reads a mapping with known keys and reports which were given.
func (v value) object(fields map[string]field) (given map[string]bool) {
	given = map[string]bool{}
	v.pairs(func(key string, at, val value) {
		read, ok := fields[key]
		if !ok {
			at.fault("is not a known key%s", suggestion(key, slices.Sorted(maps.Keys(fields))))
			return
		}
		given[key] = true
		if !val.isNull() {
			read(val)
			return
		}
		at.fault("must have a value")
	})
	return given
}

func suggestion(key string, known []string) string {
	for _, k := range known {
		if strings.EqualFold(k, key) || closeTo(k, key) {
			return fmt.Sprintf("; did you mean %q?", k)
		}
	}
	return "; known are " + strings.Join(known, ", ")
}

// closeTo reports whether a and b are one edit apart: a letter changed, left
// out or added, or two neighbours swapped.
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

func (v value) isNull() bool {
	_, null := v.node.(*ast.NullNode)
	return null || v.node == nil
}

func (v value) isSequence() bool {
	_, ok := v.node.(*ast.SequenceNode)
	return ok
}

func (v value) describe() string {
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

// list calls each for the elements of a list.
func (v value) list(each field) {
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		v.fault("must be a list, got %s", v.describe())
		return
	}
	for i, element := range n.Values {
		each(value{fmt.Sprintf("%s[%d]", v.path, i), unsplit(element), v.reader}.resolve())
	}
}

// unsplit mends a fault of the parser: in a list within braces it takes
// host:7000, a plain scalar to YAML, for a mapping of host to 7000.
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

func (v value) str() (text string, ok bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	v.fault("must be a string, got %s", v.describe())
	return "", false
}

func text(to *string) field {
	return func(v value) {
		if s, ok := v.str(); ok {
			if s == "" {
				v.fault("must not be empty")
			}
			*to = s
		}
	}
}

func oneOf(to *string, words ...string) field {
	return func(v value) {
		s, ok := v.str()
		if ok && !slices.Contains(words, s) {
			v.fault("must be one of %s, got %q", strings.Join(words, ", "), s)
		} else if ok {
			*to = s
		}
	}
}

var plainDigits = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// integer is the node's whole number; one beyond 64 bits is the largest or
// smallest there is. Fractions, and spellings that YAML reads in another base
// or with separators (010 is 8), are faults.
func (v value) integer() (int64, bool) {
	text := v.node.GetToken().Value
	switch v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode: // the parser takes long numbers for fractions
		if plainDigits.MatchString(text) {
			i, _ := strconv.ParseInt(text, 10, 64)
			return i, true
		}
	}
	v.fault("must be a whole number in plain digits, got %s", v.describe())
	return 0, false
}

func within(to *int, low, high int64) field {
	return func(v value) {
		i, ok := v.integer()
		if ok && (i < low || i > high) {
			v.fault("must be %d to %d, got %s", low, high, v.describe())
		} else if ok {
			*to = int(i)
		}
	}
}

func boolean(to *bool) field {
	return func(v value) {
		n, ok := v.node.(*ast.BoolNode)
		if !ok {
			v.fault("must be true or false, got %s", v.describe())
			return
		}
		*to = n.Value
	}
}

func duration(to *time.Duration, low, high time.Duration) field {
	return func(v value) {
		if i, ok := v.node.(*ast.IntegerNode); ok && i.GetToken().Value == "0" && low == 0 {
			*to = 0
			return
		}
		s, _ := v.peek()
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			v.fault("must be a duration such as 30s or 24h, got %s", v.describe())
		case d < low:
			v.fault("must be at least %s, got %s", capping.Span(low), s)
		case d > high:
			v.fault("must be at most %s, got %s", capping.Span(high), s)
		case d%time.Millisecond != 0:
			v.fault("must be whole milliseconds, got %s", s)
		default:
			*to = d
		}
	}
}

var sizePattern = regexp.MustCompile(`^([0-9]{1,9})(B|KiB|MiB|GiB)?$`)

func size(to *int64, low, high int64) field {
	return func(v value) {
		m := sizePattern.FindStringSubmatch(v.node.GetToken().Value)
		if m == nil {
			v.fault("must be a size such as 16MiB, got %s", v.describe())
			return
		}
		n, _ := strconv.ParseInt(m[1], 10, 64)
		n <<= map[string]int{"KiB": 10, "MiB": 20, "GiB": 30}[m[2]]
		if n < low || n > high {
			v.fault("must be %d to %d bytes, got %s", low, high, m[0])
			return
		}
		*to = n
	}
}

// peek is the value's text when it is a string; it notes no fault.
func (v value) peek() (string, bool) {
	n, ok := v.node.(*ast.StringNode)
	if !ok {
		return "", false
	}
	return n.Value, true
}
