package yamltree

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// These constants limit the size and the complexity of a YAML text.
const (
	maxBytes   = 1 << 20
	maxMarks   = 100_000
	maxTokens  = 50_000
	maxDepth   = 32
	maxSpelled = 100_000
)

// The constant "marks" lists the characters with which a token of YAML syntax can begin or end.
const marks = "[]{},:?-&*!|>%@`\"'#<=~.\n"

// checkMarks limits the number of YAML tokens, without running the scanner of the YAML library, by counting the
// characters in the constant marks. Each YAML token begins or ends with one of the characters in "marks".
func checkMarks(text []byte) error {
	if n, line := countMarks(text, maxMarks); n > maxMarks {
		return &Fault{Line: line, Column: 1, Rule: fmt.Sprintf("is too much: more than %d brackets, colons, quotes "+
			"and the like up to here", maxMarks)}
	}
	return nil
}

// countMarks counts the lines and the marks (characters that can begin or end a YAML token) of a text. When the count
// exceeds the argument "most", the function countMarks stops. A comment line counts as one mark.
func countMarks(text []byte, most int) (n, line int) {
	line = 1
	comment, blank := false, true
	for _, c := range text {
		if n > most {
			break
		}
		if c == '\n' || c == '\r' {
			comment, blank = false, true
			n++
			if c == '\n' {
				line++
			}
			continue
		}
		comment = comment || blank && c == '#'
		blank = blank && c == ' '
		if !comment && strings.IndexByte(marks, c) >= 0 {
			n++
		}
	}
	return n, line
}

// checkTokens returns an error if a text has too many YAML tokens or nests them too deeply.
func checkTokens(text string) error {
	var d depth
	for i, t := range lexer.Tokenize(text) {
		if i == maxTokens {
			return at(t, fmt.Sprintf("is too much: more than %d names, values and signs up to here", maxTokens))
		}
		if d.add(t) > maxDepth {
			return at(t, fmt.Sprintf("is too deep: more than %d levels within each other", maxDepth))
		}
	}
	return nil
}

func at(t *token.Token, rule string) error {
	return &Fault{Line: t.Position.Line, Column: t.Position.Column, Rule: rule}
}

// The type "depth" computes the nesting depth of YAML tokens. Outside brackets, the nesting depth of a YAML token
// depends on its column. Inside brackets, the nesting depth of a YAML token is the number of open brackets. Consecutive
// prefixes without a value, such as "- - -" and "!a !b", also increase the nesting depth.
type depth struct {
	columns []int // columns of the enclosing keys and dashes, in ascending order
	flow    int   // number of open brackets
	row     int   // tags and anchors since the last value; inside brackets also keys and dashes
	before  *token.Token
}

func (d *depth) add(t *token.Token) int {
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		d.flow++
		d.row = 0
	case token.SequenceEndType, token.MappingEndType:
		d.flow = max(0, d.flow-1)
		d.row = 0
	case token.CollectEntryType:
		d.row = 0
	case token.SequenceEntryType, token.MappingKeyType:
		d.enter(t)
	case token.MappingValueType:
		if d.before != nil && d.before.Position.Line == t.Position.Line {
			d.enter(d.before)
		} else {
			d.enter(t)
		}
	case token.TagType, token.AnchorType:
		d.row++
	case token.CommentType:
		return 0
	case token.DocumentHeaderType, token.DocumentEndType:
		*d = depth{}
	default:
		if d.flow == 0 && (d.before == nil || d.before.Type != token.AnchorType) {
			d.row = 0
		}
	}
	d.before = t
	return len(d.columns) + d.flow + d.row
}

// The method "enter" notes that the tokens after the token t are nested in t, which is a key or a dash.
func (d *depth) enter(t *token.Token) {
	if d.flow > 0 {
		d.row++
		return
	}
	for len(d.columns) > 0 && d.columns[len(d.columns)-1] >= t.Position.Column {
		d.columns = d.columns[:len(d.columns)-1]
	}
	d.columns = append(d.columns, t.Position.Column)
}

// checkAliases returns an error if a YAML tree would have too many nodes after all aliases are expanded. Without
// checkAliases, ten lines with ten aliases to the previous line would expand to ten billion values.
func checkAliases(root ast.Node) error {
	s := speller{anchors: map[string]int{}}
	s.size(root)
	return s.fault()
}

type speller struct {
	anchors map[string]int // expanded size of each anchor; -1 while it is being computed
	failed  *Fault
}

func (s *speller) fault() error {
	if s.failed == nil {
		return nil
	}
	return s.failed
}

// size() returns the number of nodes in the YAML node n after the expansion of all aliases. When the number of nodes
// exceeds the limit, size() stops counting.
func (s *speller) size(n ast.Node) int {
	total := 1
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			total += s.size(v)
		}
	case *ast.MappingValueNode:
		total += s.size(n.Key) + s.size(n.Value)
	case *ast.MappingKeyNode:
		total += s.size(n.Value)
	case *ast.SequenceNode:
		for _, v := range n.Values {
			total += s.size(v)
		}
	case *ast.TagNode:
		total += s.size(n.Value)
	case *ast.AnchorNode:
		name := n.Name.GetToken().Value
		s.anchors[name] = -1
		total = s.size(n.Value)
		s.anchors[name] = total
	case *ast.AliasNode:
		total = s.alias(n)
	}
	if total > maxSpelled {
		s.fail(n, fmt.Sprintf("is too much: more than %d values after every alias is replaced by its value",
			maxSpelled))
		return maxSpelled + 1
	}
	return total
}

func (s *speller) alias(n *ast.AliasNode) int {
	size, known := s.anchors[n.Value.GetToken().Value]
	switch {
	case !known:
		return 1 // the later reader of the tree reports the error
	case size < 0:
		s.fail(n, fmt.Sprintf("alias *%s refers to itself", clip(n.Value.GetToken().Value)))
		return 1
	}
	return size
}

func (s *speller) fail(n ast.Node, rule string) {
	if s.failed == nil {
		line, column := Position(n)
		s.failed = &Fault{Line: line, Column: column, Rule: rule}
	}
}
