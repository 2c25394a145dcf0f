package lookup_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"capper/internal/objects/objectstest"
	"capper/lookup"
)

// TestAServiceImportsThePackage runs the commands and the program of docs/lookup.md in an empty
// directory beside the repository.
func TestAServiceImportsThePackage(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs/lookup.md"))
	require.NoError(t, err)
	part := func(rule string, n int) string {
		found := regexp.MustCompile("(?s)"+rule).FindAllSubmatch(page, -1)
		require.Greater(t, len(found), n, rule)
		return string(found[n][1])
	}
	dir := t.TempDir()
	engine, source := filepath.Join(dir, "engine"), filepath.Join(dir, "segments")
	require.NoError(t, os.Mkdir(engine, 0o755))
	require.NoError(t, os.Symlink(root, filepath.Join(dir, "capper")))
	run := func(command string) string {
		t.Helper()
		cmd := exec.Command("bash", "-euc", command)
		cmd.Dir, cmd.Env = engine, append(os.Environ(), "SEGMENTS="+source, "SEGMENTS_CACHE="+dir+"/cache",
			"GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		return string(out)
	}
	run(publishesAsMakeRun(t, root, source))
	run(part("```sh\n(.*?)```", 0))
	require.NoError(t, os.WriteFile(filepath.Join(engine, "main.go"), []byte(part("```go\n(package main\n.*?)```", 0)),
		0o644))
	program := strings.Replace(part("```sh\n(.*?)```", 1), "SEGMENTS=../capper/build/run/segments ", "", 1)
	require.Contains(t, run(program), part("The program prints this result:\n\n```\n(.*?)```", 0))

	linked := run(`go list -deps -f '{{with .Module}}{{.Path}}{{end}}' . | sort -u`)
	for _, module := range []string{"echo", "pebble", "go-redis", "capper/client"} {
		require.NotContains(t, strings.Fields(linked), module)
		require.NotContains(t, linked, "/"+module)
	}
}

// publishesAsMakeRun returns the command that publishes the data of scripts/run.sh to source.
func publishesAsMakeRun(t *testing.T, root, source string) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(root, "scripts/run.sh"))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?s)build/bin/segmentbuild build --to "\$dir/segments"(.*?)\n\n`).FindSubmatch(script)
	require.NotNil(t, found)
	return fmt.Sprintf("cd %q && go run ./cmd/segmentbuild build --to %q %s", root, source, found[1])
}

// TestThePageOfAudiencesShowsRealRefusals checks that Audience returns each error that
// docs/audiences.md shows.
func TestThePageOfAudiencesShowsRealRefusals(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/audiences.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| error |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `(.*)` \\| `(.*)` \\|$").FindAllStringSubmatch(table, -1)
	require.Len(t, rows, 4)
	dir := t.TempDir()
	first(t, objectstest.Open(t, dir))
	g := follow(t, lookup.Config{Source: dir}).Current()
	for _, row := range rows {
		_, err := g.Audience(row[1])
		require.EqualError(t, err, fmt.Sprintf("lookup: audience %q: %s", row[1], strings.ReplaceAll(row[2], `\|`,
			"|")))
	}
}
