package clienttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An engine imports the client as docs/integration.md shows it: the page's
// commands and program, in an empty directory beside the repository.
func TestAnEngineImportsTheClient(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs/integration.md"))
	require.NoError(t, err)
	programs := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, programs, 1)
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, commands, 2)

	dir := t.TempDir()
	engine := filepath.Join(dir, "engine")
	require.NoError(t, os.Mkdir(engine, 0o755))
	require.NoError(t, os.Symlink(root, filepath.Join(dir, "capper")))
	url := newCapper(t, nil)
	run := func(command string) string {
		t.Helper()
		cmd := exec.Command("bash", "-euc", command)
		cmd.Dir, cmd.Env = engine, append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		return string(out)
	}
	run(string(commands[0][1]))
	require.NoError(t, os.WriteFile(filepath.Join(engine, "main.go"), programs[0][1], 0o644))
	start := string(commands[1][1])
	require.Contains(t, start, "=http://127.0.0.1:8080 ")
	start = strings.ReplaceAll(start, "http://127.0.0.1:8080", url)
	require.Contains(t, run(start), "sent to [14 15 42]")
	require.Contains(t, run(start), "sent to [14 15 42]", "the same send")
	run("sed -i.bak s/summer/winter/ main.go")
	require.Equal(t, 3, strings.Count(run(start), "by daily"))

	// What it brings along: the modules of the packages that are linked, and of the whole graph none of the service's.
	linked := strings.Fields(run(`go list -deps -f '{{with .Module}}{{.Path}}{{end}}' . | sort -u`))
	require.ElementsMatch(t, []string{
		"capper/client", "engine", "github.com/RoaringBitmap/roaring/v2", "github.com/bits-and-blooms/bitset",
		"golang.org/x/sys",
	}, linked)
	graph := run("go list -m all")
	for _, module := range []string{"echo", "pebble", "go-redis", "aws", "prometheus"} {
		require.NotContains(t, graph, module)
	}
}
