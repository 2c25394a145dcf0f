package audience

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// SyntaxError reports the position of a syntax error in an audience expression, and the allowed tokens at this
// position.
type SyntaxError struct {
	Column   int    // in characters, counted from 1
	Expected string // such as `a name or "("`
	Got      string // such as `"&"` or "the end"
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("column %d: expected %s, got %s", e.Column, e.Expected, e.Got)
}

// BoundError reports the position at which an audience expression exceeds a limit, such as MaxNames.
type BoundError struct {
	Column int    // in characters, counted from 1
	Most   string // such as "256 names"
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("column %d: an expression must have at most %s", e.Column, e.Most)
}

// endToken and nameToken are kinds of tokens in an audience expression. If a token is an operator or a parenthesis, its
// kind is this character.
const (
	endToken  = 0
	nameToken = 'n'
)

// anyToken, anyOperand and anyOperator are texts in which a syntax error names the allowed tokens.
const (
	anyToken    = `a name, an operator ("&", "|", "-") or a parenthesis`
	anyOperand  = `a name or "("`
	anyOperator = `an operator ("&", "|", "-") or `
)

type token struct {
	kind   byte
	text   string
	column int
}

func (t *token) String() string {
	if t.kind == endToken {
		return "the end"
	}
	return fmt.Sprintf("%q", t.text)
}

// The type "scanner" splits the text of an expression into tokens.
type scanner struct {
	rest   string
	column int // column of the first character of rest
}

func (s *scanner) next() (token, error) {
	for s.rest != "" && strings.IndexByte(" \t\r\n", s.rest[0]) >= 0 {
		s.take(1)
	}
	if s.rest == "" {
		return token{kind: endToken, column: s.column}, nil
	}
	switch c := s.rest[0]; {
	case strings.IndexByte("&|-()", c) >= 0:
		return s.take(1).as(c), nil
	case isAlphanumeric(c):
		return s.name()
	default:
		_, size := utf8.DecodeRuneInString(s.rest)
		return token{}, &SyntaxError{Column: s.column, Expected: anyToken,
			Got: fmt.Sprintf("%+q", s.rest[:size])}
	}
}

// The method "name" parses the name at the beginning of the expression's remaining text.
func (s *scanner) name() (token, error) {
	n := 1
	for n < len(s.rest) && isOfName(s.rest[n]) {
		n++
	}
	if n > MaxName {
		return token{}, &SyntaxError{Column: s.column, Expected: fmt.Sprintf("a name of at most %d characters",
			MaxName), Got: fmt.Sprintf("one of %d", n)}
	}
	return s.take(n).as(nameToken), nil
}

// The method "take" removes n bytes from the beginning of the expression's remaining text, and returns these bytes as a
// token. All n bytes must be ASCII.
func (s *scanner) take(n int) *token {
	t := &token{text: s.rest[:n], column: s.column}
	s.rest, s.column = s.rest[n:], s.column+n
	return t
}

func (t *token) as(kind byte) token {
	t.kind = kind
	return *t
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isOfName(c byte) bool { return isAlphanumeric(c) || strings.IndexByte("._-/+", c) >= 0 }
