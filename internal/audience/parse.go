package audience

import (
	"fmt"
	"strings"
)

// MaxText, MaxNames, MaxNesting and MaxName limit the size of an audience expression.
const (
	MaxText    = 4 << 10 // bytes of an expression
	MaxNames   = 256     // names in an expression
	MaxNesting = 64      // levels of nested parentheses
	MaxName    = 128     // characters in a name
)

// All and Default are names that an audience expression can use in every generation (published version).
const (
	All     = "all"     // every user in any segment or set
	Default = "default" // every user who is in a set and in no segment
)

// Expression is a parsed audience expression, which selects users by segments and sets. An Expression is immutable.
type Expression struct {
	text string
	root *node
	// The field "used" holds the named expressions of the configuration to which this expression refers, with the
	// column of each reference. Column 0 marks an indirect reference.
	used map[string]int
	// The field "named" holds all named expressions of the configuration. UnknownError suggests names from this map.
	named map[string]*Expression
}

// The type "node" is a node in the syntax tree of an expression: a name, or an operator with two operands.
type node struct {
	operator    byte // '&', '|' or '-'; 0: the node is a name
	left, right *node
	name        string
	column      int    // column of the name
	within      string // the expression of the configuration that contains the name; "": the caller's expression
	names       int    // number of names in this node
	nesting     int    // number of nested levels of parentheses or named expressions
}

// The function Parse parses the text of an audience expression. The error of Parse is a *SyntaxError, a *BoundError, or
// an error about a text that is too long.
func Parse(text string) (*Expression, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("an audience expression must have at most %d bytes, got %d", MaxText, len(text))
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

// Text returns the expression as the caller wrote it.
func (e *Expression) Text() string { return e.text }

// String returns the expression in canonical form, with definitions in place of named expressions. Two expressions with
// the same canonical form select the same users.
func (e *Expression) String() string {
	var b strings.Builder
	e.root.write(&b)
	return b.String()
}

// The method Plain returns the text of the expression with definitions in place of named expressions. The text from
// Plain keeps its meaning when the configuration changes a definition. If the expression uses no named expression, or
// if the expanded text exceeds a limit of Parse, Plain returns "".
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

// writeOperand writes the text of a node to the argument b. The node is an operand of an operator. If the argument
// "parentheses" is true, and the node has an operator, writeOperand puts the text in parentheses, so that the text
// stays one operand.
func (n *node) writeOperand(b *strings.Builder, parentheses bool) {
	if !parentheses || n.operator == 0 {
		n.write(b)
		return
	}
	b.WriteByte('(')
	n.write(b)
	b.WriteByte(')')
}

// The type "parser" parses the tokens of an audience expression, and looks at most one token ahead.
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

// expectedOperator returns the syntax error for a wrong token after an operand. After an operand, an expression must
// have an operator, or must end with the text in the argument "end".
func (p *parser) expectedOperator(end string) error {
	if p.token.kind == nameToken && strings.HasSuffix(p.before.text, "-") {
		end += `; the name before it ends in "-"`
	}
	return p.expected(anyOperator + end)
}

// The method "expression" parses an audience expression: terms and the operators between them. The argument "depth" is
// the number of open parentheses.
func (p *parser) expression(depth int) (*node, error) {
	return p.chain("|-", func() (*node, error) {
		return p.chain("&", func() (*node, error) { return p.factor(depth) })
	})
}

// The method "chain" parses operands with any of the given operators between them. The operators apply from left to
// right.
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

// The method "factor" parses a name, or an expression in parentheses.
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
