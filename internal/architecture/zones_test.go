package architecture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Programs take the rules of time zones from package zones alone: time.LoadLocation looks at the machine's files first.
func TestZonesComeFromTheProgram(t *testing.T) {
	t.Parallel()
	read := 0
	for _, r := range tree(t) {
		files, err := filepath.Glob(filepath.Join(r.Dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(r.path, "test") {
				continue
			}
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			read++
			for _, banned := range []string{"time.LoadLocation(", `"time/tzdata"`} {
				require.NotContains(t, string(source), banned, "%s: use zones.Load", file)
			}
		}
	}
	require.Greater(t, read, 300)
}
