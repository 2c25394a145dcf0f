package objects

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesThatExistAreNoPatterns checks that the name of an existing file with "[" is not a pattern.
// Other names remain patterns, including names whose stars match other files as well.
func TestNamesThatExistAreNoPatterns(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"f[1].csv", "f1.csv", "f2.csv", "open[1.csv", "*.txt", "a.txt", "d[1]/x.csv",
		"d1/y.csv", `b\[*?/z.csv`} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("1\n"), 0o600))
	}
	for pattern, want := range map[string][]string{
		"f[1].csv":                     {"f[1].csv"},
		"f[12].csv":                    {"f1.csv", "f2.csv"},
		"open[1.csv":                   {"open[1.csv"},
		"*.txt":                        {"*.txt", "a.txt"},
		"d[1]/x.csv":                   {"d[1]/x.csv"},
		"d[1]/*.csv":                   {"d1/y.csv"},
		Literal("d[1]") + "/*":         {"d[1]/x.csv"},
		Literal(`b\[*?`) + "/*":        {`b\[*?/z.csv`},
		"**/d[[]1]/**":                 {"d[1]/x.csv"},
		Literal("f[1].csv"):            {"f[1].csv"},
		Literal("d[1]") + "/[x-z].csv": {"d[1]/x.csv"},
	} {
		found, err := LocalFiles{}.Glob(t.Context(), filepath.Join(root, pattern))
		require.NoError(t, err, pattern)
		for i := range want {
			want[i] = filepath.Join(root, want[i])
		}
		require.Equal(t, want, found.Names, pattern)
	}
	_, err := LocalFiles{}.Glob(t.Context(), filepath.Join(root, "none[1.csv"))
	require.Error(t, err)
	_, _, err = LocalFiles{}.Open(t.Context(), filepath.Join(root, "d[1]"))
	require.ErrorContains(t, err, `d[[]1]/*.csv`)
}
