package yamltree

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Word returns the text of a YAML value if the value is a plain or quoted string. If the YAML value is not a plain or
// quoted string, Word returns false and records no error.
func (v Value) Word() (string, bool) {
	n, ok := v.node.(*ast.StringNode)
	if !ok {
		return "", false
	}
	return n.Value, true
}

// Token returns the text of a scalar exactly as the document contains it.
func (v Value) Token() string { return v.node.GetToken().Value }

// IsInteger reports whether the value is a whole number.
func (v Value) IsInteger() bool {
	_, ok := v.node.(*ast.IntegerNode)
	return ok
}

// IsZero reports whether the value is the number 0.
func (v Value) IsZero() bool { return v.IsInteger() && v.Token() == "0" }

// Text returns the text of a YAML string. If the YAML value is not a string, Text records an error.
func (v Value) Text() (text string, ok bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	v.Fault("must be a string, got %s", v.Describe())
	return "", false
}

// Scalar returns the text of a YAML string. For a YAML value such as a number or another word, Scalar returns the
// text exactly as the document contains it.
func (v Value) Scalar() (text string, ok bool) {
	switch n := v.node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return v.Text()
	case ast.ScalarNode:
		return n.GetToken().Value, true
	}
	v.Fault("must be a single value, got %s", v.Describe())
	return "", false
}

// Text returns a Field that reads a non-empty string.
func Text(to *string) Field {
	return func(v Value) {
		if s, ok := v.Text(); ok {
			if s == "" {
				v.Fault("must not be empty")
			}
			*to = s
		}
	}
}

// OneOf returns a Field that reads one of the given words.
func OneOf(to *string, words ...string) Field {
	return func(v Value) {
		s, ok := v.Text()
		if ok && !slices.Contains(words, s) {
			v.Fault("must be one of %s, got %q", strings.Join(words, ", "), s)
		} else if ok {
			*to = s
		}
	}
}

var plainDigits = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// The method Int returns a YAML value as a whole number. If a number has more than 64 bits, Int returns the largest or
// the smallest int64. Int records an error for fractions, and for notations that YAML reads in another base or with
// separators, such as 010.
func (v Value) Int() (int64, bool) {
	text := v.node.GetToken().Value
	switch v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode: // the parser reads long whole numbers as fractions
		if plainDigits.MatchString(text) {
			i, _ := strconv.ParseInt(text, 10, 64)
			return i, true
		}
	}
	v.Fault("must be a whole number in plain digits, got %s", v.Describe())
	return 0, false
}

// The function Within returns a Field that reads a whole number from the argument "low" to the argument "high".
func Within(to *int, low, high int64) Field {
	return func(v Value) {
		i, ok := v.Int()
		if ok && (i < low || i > high) {
			v.Fault("must be %d to %d, got %s", low, high, v.Describe())
		} else if ok {
			*to = int(i)
		}
	}
}

// Bool returns a Field that reads true or false.
func Bool(to *bool) Field {
	return func(v Value) {
		n, ok := v.node.(*ast.BoolNode)
		if !ok {
			v.Fault("must be true or false, got %s", v.Describe())
			return
		}
		*to = n.Value
	}
}

var sizePattern = regexp.MustCompile(`^([0-9]{1,9})(B|KiB|MiB|GiB)?$`)

// Size returns a Field that reads a number of bytes such as 16MiB, from the argument "low" to the argument "high".
func Size(to *int64, low, high int64) Field {
	return func(v Value) {
		m := sizePattern.FindStringSubmatch(v.node.GetToken().Value)
		if m == nil {
			v.Fault("must be a size such as 16MiB, got %s", v.Describe())
			return
		}
		n, _ := strconv.ParseInt(m[1], 10, 64)
		n <<= map[string]int{"KiB": 10, "MiB": 20, "GiB": 30}[m[2]]
		if n < low || n > high {
			v.Fault("must be %d to %d bytes, got %s", low, high, m[0])
			return
		}
		*to = n
	}
}
