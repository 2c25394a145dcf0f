package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ReadFile reads a YAML file for Parse. ReadFile reads at most one byte more than the maximum size, so that Parse can
// reject a larger file.
func ReadFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

// Parse returns the root node of the only YAML document in the text. If a mapping has repeated keys, Parse returns an
// error unless the options allow them. The error is a *Fault.
func Parse(text []byte, options ...parser.Option) (ast.Node, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if err := measure(text); err != nil {
		return nil, err
	}
	parsed, err := parser.ParseBytes(text, 0, options...)
	if err != nil {
		return nil, Explain(err)
	}
	var documents []ast.Node
	for _, d := range parsed.Docs {
		if d.Body != nil && d.Body.Type() != ast.CommentType {
			documents = append(documents, d.Body)
		}
	}
	switch len(documents) {
	case 0:
		return nil, &Fault{Rule: "is empty", Empty: true}
	case 1:
		if err := checkAliases(documents[0]); err != nil {
			return nil, err
		}
		return documents[0], nil
	}
	line, column := Position(documents[1])
	return nil, &Fault{Line: line, Column: column, Rule: "a second document begins here, but a file must hold only " +
		"one"}
}

// The function "measure" returns an error for a YAML text that is too large or too deeply nested for the parser.
func measure(text []byte) error {
	if len(text) > maxBytes {
		return &Fault{Rule: fmt.Sprintf("must be at most %d bytes, this is longer", maxBytes)}
	}
	if !utf8.Valid(text) {
		return &Fault{Rule: "must be UTF-8 text"}
	}
	if err := checkMarks(text); err != nil {
		return err
	}
	return checkTokens(string(text))
}

// Explain converts an error of the YAML library to a *Fault. The returned Fault contains no excerpt of the document,
// because the YAML library would copy the document once for each token. If err already is a *Fault, Explain returns err
// unchanged.
func Explain(err error) *Fault {
	var known *Fault
	if errors.As(err, &known) {
		return known
	}
	var syntax yaml.Error
	if !errors.As(err, &syntax) {
		return &Fault{Rule: strings.SplitN(err.Error(), "\n", 2)[0]}
	}
	fault := &Fault{Rule: clip(syntax.GetMessage())}
	if strings.Contains(fault.Rule, "found character '\t'") {
		fault.Rule = "a tab begins this line, but YAML allows only blanks there"
	}
	if token := syntax.GetToken(); token != nil {
		fault.Line, fault.Column = token.Position.Line, token.Position.Column
	}
	return fault
}

func clip(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// The function Position returns the line and column at which a YAML node begins. A mapping without braces begins at its
// first key, although the token of its node is the first colon.
func Position(node ast.Node) (line, column int) {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return Position(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return Position(n.Key)
	}
	if node == nil || node.GetToken() == nil {
		return 0, 0
	}
	at := node.GetToken().Position
	return at.Line, at.Column
}
