package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is larger is two ideas in one place.
const (
	maxFiles         = 14  // production files of a package
	maxFileLines     = 350 // of a production file
	maxFunctionLines = 60  // of any function, its braces included
)

func TestPackagesFilesAndFunctionsStaySmall(t *testing.T) {
	t.Parallel()
	var large []string
	for _, r := range tree(t) {
		if n := len(r.GoFiles); n > maxFiles {
			large = append(large, fmt.Sprintf("%s: %d files", r.path, n))
		}
		for _, name := range r.GoFiles {
			large = append(large, largeIn(t, filepath.Join(r.Dir, name), r.path+"/"+name)...)
		}
	}
	require.Empty(t, large)
}

// largeIn tells of a file that is too long, and of its functions that are.
func largeIn(t *testing.T, source, name string) (large []string) {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, source, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	if n := set.File(parsed.Pos()).LineCount(); n > maxFileLines {
		large = append(large, fmt.Sprintf("%s: %d lines", name, n))
	}
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := set.Position(function.End()).Line - set.Position(function.Pos()).Line + 1; n > maxFunctionLines {
			large = append(large, fmt.Sprintf("%s: %s has %d lines", name, function.Name.Name, n))
		}
	}
	return large
}
