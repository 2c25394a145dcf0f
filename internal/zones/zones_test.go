package zones_test

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/zones"
)

func TestEveryZoneLoads(t *testing.T) {
	t.Parallel()
	names := zones.Names()
	require.Greater(t, len(names), 590)
	require.True(t, slices.IsSorted(names))
	for _, name := range names {
		place, err := zones.Load(name)
		require.NoError(t, err)
		require.Equal(t, name, place.String())
		again, err := zones.Load(name)
		require.NoError(t, err)
		require.Same(t, place, again)
	}
	place, err := zones.Load("UTC")
	require.NoError(t, err)
	require.Same(t, time.UTC, place)
}

// Names of the machine's files, and what file systems take for a name, are none.
func TestOtherNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "Local", "local", "localtime", "posixrules", "right/Asia/Singapore", "posix/UTC", "asia/singapore",
		"Asia/Singapore ", "Asia", "Asia/", "Factory",
		"../Asia/Singapore", "/usr/share/zoneinfo/UTC", "Asia/Singapore\n", "EST5EDT,M3.2.0,M11.1.0",
	} {
		_, err := zones.Load(name)
		require.ErrorContains(t, err, "must be a time zone of the IANA database", "%q", name)
	}
}

// The embedded database is no older than that of the toolchain, and the same where the release is.
func TestTheDatabaseIsThatOfTheToolchain(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `^20\d\d[a-z]$`, zones.Version())
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	dir := filepath.Join(strings.TrimSpace(string(root)), "lib", "time")
	script, err := os.ReadFile(filepath.Join(dir, "update.bash"))
	require.NoError(t, err)
	release := regexp.MustCompile(`(?m)^DATA=(\S+)$`).FindSubmatch(script)
	require.NotNil(t, release)
	require.GreaterOrEqual(t, zones.Version(), string(release[1]), "run go generate ./internal/zones")
	if zones.Version() != string(release[1]) {
		return
	}
	of, err := os.ReadFile(filepath.Join(dir, "zoneinfo.zip"))
	require.NoError(t, err)
	embedded, err := os.ReadFile("zoneinfo.zip")
	require.NoError(t, err)
	require.True(t, bytes.Equal(of, embedded), "run go generate ./internal/zones")
}

// A program whose machine says something else of every zone goes by the embedded rules.
func TestTheMachineChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database, err := zip.OpenReader("zoneinfo.zip")
	require.NoError(t, err)
	defer database.Close()
	newYork, err := fs.ReadFile(database, "America/New_York")
	require.NoError(t, err)
	for _, name := range []string{"Asia/Singapore", "Europe/Berlin", "UTC"} {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, newYork, 0o600))
	}
	program := exec.Command("go", "run", "./testdata/show")
	program.Env = append(program.Environ(), "ZONEINFO="+dir, "TZ=Asia/Singapore")
	shown, err := program.CombinedOutput()
	require.NoError(t, err, "%s", shown)
	require.Equal(t, "Asia/Singapore 22:00 (time: 09:00)\nEurope/Berlin 15:00 (time: 09:00)\nUTC 14:00 (time: 14:00)\n",
		string(shown))
}
