//go:build storms

package clienttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// copied is a copy of the repository's files, as git would commit them all.
func copied(t *testing.T) (dir string) {
	t.Helper()
	root, dir := "../..", t.TempDir()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	require.NoError(t, err)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		info, err := os.Lstat(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		require.NoError(t, err)
		content, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, info.Mode()))
	}
	return dir
}

// Who hosts the repository renames it with one command: what comes out builds,
// and nothing of the old name is left.
func TestTheModulesAreRenamed(t *testing.T) {
	t.Parallel()
	dir := copied(t)
	run := func(command string) (string, error) {
		cmd := exec.Command("bash", "-euc", command)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(command string) string {
		t.Helper()
		out, err := run(command)
		require.NoError(t, err, "%s\n%s", command, out)
		return out
	}
	must("git init -q && git add -A")
	first := strings.TrimSpace(must("sed -n 's/^module //p' go.mod"))
	for _, bad := range []string{"", "NEW", "https://example.com/capper", "example.com/a b",
		"example.com/capper/client", "example.com/;ls"} {
		out, err := run("make module-path NEW='" + bad + "'")
		require.Error(t, err, bad)
		require.Contains(t, out, "must be a module path")
	}
	old := first
	for _, path := range []string{"git.example.com/growth/capper", "example.com/send-caps"} {
		must("make module-path NEW=" + path)
		require.Equal(t, path, strings.TrimSpace(must("sed -n 's/^module //p' go.mod")))
		require.Equal(t, path+"/client", strings.TrimSpace(must("sed -n 's/^module //p' client/go.mod")))
		left, _ := run(`git grep -nE '"` + strings.ReplaceAll(old, ".", `\.`) +
			`/(client|cmd|internal|lookup|scripts)' -- '*.go' '*.mod' docs README.md`)
		require.Empty(t, left)
		old = path
	}
	must("[ -z \"$(gofmt -l .)\" ]")
	must("go list -deps -test ./...") // finds every import, those of tests as well
	must("go build ./cmd/segmentbuild")
	must("cd client && go vet ./...")
	require.Contains(t, must("grep -A3 'go mod init engine' docs/lookup.md"),
		"-require example.com/send-caps@v0.0.0 -replace example.com/send-caps=../capper")
	require.Contains(t, must("grep -A3 'go mod init engine' docs/integration.md"),
		"-require example.com/send-caps/client@v0.0.0 -replace example.com/send-caps/client=../capper/client")
}
