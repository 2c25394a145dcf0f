package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// narrow matches a use of the switch that cuts images, by the package's name or by another name of the import.
var narrow = regexp.MustCompile(`\.Narrow\b`)

// TestOnlyTestsNarrowImages holds that no program cuts the images of ids: in a store with cut images users share logs.
func TestOnlyTestsNarrowImages(t *testing.T) {
	t.Parallel()
	read, found := 0, []string(nil)
	for _, r := range tree(t) {
		files, err := filepath.Glob(filepath.Join(r.Dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if forTests(r.path) || strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			read++
			if narrow.Match(source) {
				found = append(found, file)
			}
		}
	}
	require.Empty(t, found)
	require.Greater(t, read, 300)
}
