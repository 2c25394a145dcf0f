package architecture

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testFile is a file of tests and the runs that compile it: make test does without the tag storms.
type testFile struct {
	path, dir     string
	tests         []string
	plain, storms bool
}

var testName = regexp.MustCompile(`^(Test|Fuzz)([^a-z]|$)`)

// testFiles parses every file of tests below the module, whatever its build constraint says.
func testFiles(t *testing.T) (files []testFile) {
	t.Helper()
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "build" || name == "client" || name == "testdata") {
			return fs.SkipDir // the client is a module of its own, without storms
		}
		if strings.HasSuffix(path, "_test.go") {
			files = append(files, parsed(t, root, path))
		}
		return nil
	}))
	require.Greater(t, len(files), 300)
	return files
}

func parsed(t *testing.T, root, path string) testFile {
	t.Helper()
	source, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	path, err = filepath.Rel(root, path)
	require.NoError(t, err)
	f := testFile{path: path, dir: filepath.Dir(path), plain: true, storms: true}
	for _, group := range source.Comments {
		for _, comment := range group.List {
			if group.Pos() < source.Package && constraint.IsGoBuild(comment.Text) {
				rule, err := constraint.Parse(comment.Text)
				require.NoError(t, err)
				f.plain, f.storms = rule.Eval(compiledWith(false)), rule.Eval(compiledWith(true))
			}
		}
	}
	for _, d := range source.Decls {
		f.declares(d)
	}
	return f
}

// declares notes a test that the declaration is.
func (f *testFile) declares(d ast.Decl) {
	if function, ok := d.(*ast.FuncDecl); ok && function.Recv == nil && function.Name.Name != "TestMain" &&
		testName.MatchString(function.Name.Name) {
		f.tests = append(f.tests, function.Name.Name)
	}
}

// compiledWith is the set of build tags of scripts/test.sh on this machine.
func compiledWith(storms bool) func(tag string) bool {
	return func(tag string) bool {
		return tag == "storms" && storms || slices.Contains([]string{"race", "unix", runtime.GOOS, runtime.GOARCH}, tag)
	}
}

// Every test belongs to make test or to make storms, and no test belongs to both.
func TestEveryTestIsInTestOrInStorms(t *testing.T) {
	t.Parallel()
	var plain, storms []string // package, space, test
	var stormDirs, stormNames []string
	for _, f := range testFiles(t) {
		for _, test := range f.tests {
			switch name := f.dir + " " + test; {
			case f.plain && f.storms:
				plain = append(plain, name)
			case f.storms:
				storms = append(storms, name)
				stormDirs, stormNames = append(stormDirs, f.dir), append(stormNames, test)
			default:
				t.Errorf("%s: the build constraint keeps %s out of both make test and make storms", f.path, test)
			}
		}
	}
	require.Greater(t, len(plain), 1000)
	require.Greater(t, len(storms), 50)

	// make storms runs the names that this list holds, in all packages of the list.
	listed, err := exec.Command(filepath.Join("..", "..", "scripts", "test.sh"), "list").Output()
	require.NoError(t, err)
	require.ElementsMatch(t, storms, strings.Split(strings.TrimSpace(string(listed)), "\n"))
	for _, name := range plain {
		dir, test, _ := strings.Cut(name, " ")
		if slices.Contains(stormDirs, dir) {
			require.NotContains(t, stormNames, test, "make storms would run %s too: rename one of both", name)
		}
	}

	// make storms leaves the measurements out, so make bench must run each of them.
	listed, err = exec.Command(filepath.Join("..", "..", "scripts", "test.sh"), "measurements").Output()
	require.NoError(t, err)
	bench := benchScripts(t)
	for _, name := range strings.Fields(string(listed)) {
		require.Contains(t, stormNames, name)
		require.Regexp(t, `\b`+name+`\b`, bench)
	}
}

// benchScripts returns the text of the scripts that make bench runs.
func benchScripts(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "scripts", "bench-*.sh"))
	require.NoError(t, err)
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}
