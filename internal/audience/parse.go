package audience

import (
	"fmt"
	"strings"
)

// The bounds of an expression.
const (
	MaxText    = 4 << 10 // bytes
	MaxNames   = 256     // names in it
	MaxNesting = 64      // parentheses within each other
	MaxName    = 128     // characters of a name
)

// Names that every generation has.
const (
	All     = "all"     // everybody in any segment or set
	Default = "default" // everybody in a set who is in no segment
)

// Expression is a parsed expression. It is immutable.
type Expression struct {
	text string
	root *node
	// used is the expressions of the configuration that it is made from, and the column
	// of each; 0: another of them is made from it.
	used map[string]int
	// named is all expressions of the configuration, which could have been meant.
	named map[string]*Expression
}

// node is a name, or an operator between two nodes.
type node struct {
	operator    byte // '&', '|', '-'; 0: a name
	left, right *node
	name        string
	column      int    // of the name
	within      string // the expression of the configuration that the name is in; "": the caller's own
	names       int    // in it
	nesting     int    // of parentheses, or of names that stand for expressions
}

// Parse reads an expression. The error is a *SyntaxError or a *BoundError, or says that the text is too long.
func Parse(text string) (*Expression, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("an expression must have at most %d bytes, got %d", MaxText, len(text))
	}
	p := &parser{scanner: scanner{rest: text, column: 1}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	root, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if p.token.kind != endToken {
		return nil, p.expectedOperator("the end")
	}
	return &Expression{text: text, root: root}, nil
}

// Text is the expression as it was given.
func (e *Expression) Text() string { return e.text }

// String is the expression in one way of writing it, without names that stand for others:
// the same string is the same users.
func (e *Expression) String() string {
	var b strings.Builder
	e.root.write(&b)
	return b.String()
}

// Plain is the expression without names that stand for others, as a call may ask for it again whatever becomes of
// those names. "" where it has none of them, or would be too long for a call.
func (e *Expression) Plain() string {
	if len(e.used) == 0 {
		return ""
	}
	text := e.String()
	if _, err := Parse(text); err != nil {
		return ""
	}
	return text
}

func (n *node) write(b *strings.Builder) {
	if n.operator == 0 {
		b.WriteString(n.name)
		return
	}
	n.left.writeOperand(b, n.operator == '&' && n.left.operator != '&')
	b.WriteString(" " + string(n.operator) + " ")
	n.right.writeOperand(b, n.operator == '&' || n.right.operator != '&')
}

// writeOperand writes a node, in parentheses where its operator would otherwise bind to another operand.
func (n *node) writeOperand(b *strings.Builder, parentheses bool) {
	if !parentheses || n.operator == 0 {
		n.write(b)
		return
	}
	b.WriteByte('(')
	n.write(b)
	b.WriteByte(')')
}

// parser reads tokens with one of them in advance.
type parser struct {
	scanner
	token  token
	before token
	names  int
}

func (p *parser) advance() (err error) {
	p.before = p.token
	p.token, err = p.next()
	return err
}

func (p *parser) expected(what string) error {
	return &SyntaxError{Column: p.token.column, Expected: what, Got: p.token.String()}
}

// expectedOperator is for what stands behind an operand, where also the end of something may be.
func (p *parser) expectedOperator(end string) error {
	if p.token.kind == nameToken && strings.HasSuffix(p.before.text, "-") {
		end += `; the name before it ends in "-"`
	}
	return p.expected(anyOperator + end)
}

// expression reads terms and what is between them, within so many parentheses.
func (p *parser) expression(depth int) (*node, error) {
	return p.chain("|-", func() (*node, error) {
		return p.chain("&", func() (*node, error) { return p.factor(depth) })
	})
}

// chain reads operands between any of the operators, which go from left to right.
func (p *parser) chain(operators string, operand func() (*node, error)) (*node, error) {
	left, err := operand()
	for err == nil && strings.IndexByte(operators, p.token.kind) >= 0 {
		operator := p.token.kind
		if err = p.advance(); err != nil {
			break
		}
		var right *node
		if right, err = operand(); err == nil {
			left = join(operator, left, right)
		}
	}
	return left, err
}

func join(operator byte, left, right *node) *node {
	return &node{operator: operator, left: left, right: right, names: left.names + right.names,
		nesting: max(left.nesting, right.nesting)}
}

// factor reads a name or an expression in parentheses.
func (p *parser) factor(depth int) (*node, error) {
	switch p.token.kind {
	case nameToken:
		return p.name()
	case '(':
		return p.parentheses(depth + 1)
	default:
		return nil, p.expected(anyOperand)
	}
}

func (p *parser) name() (*node, error) {
	if p.names++; p.names > MaxNames {
		return nil, &BoundError{p.token.column, fmt.Sprintf("%d names", MaxNames)}
	}
	n := &node{name: p.token.text, column: p.token.column, names: 1}
	return n, p.advance()
}

func (p *parser) parentheses(depth int) (*node, error) {
	if depth > MaxNesting {
		return nil, &BoundError{p.token.column, fmt.Sprintf("%d parentheses within each other", MaxNesting)}
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	inner, err := p.expression(depth)
	if err != nil {
		return nil, err
	}
	if p.token.kind != ')' {
		return nil, p.expectedOperator(`")"`)
	}
	n := *inner
	n.nesting++
	return &n, p.advance()
}
