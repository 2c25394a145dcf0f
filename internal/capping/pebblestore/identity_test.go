package pebblestore

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"capper/internal/capping"
	"capper/internal/capping/pebblestore/database"
	"capper/internal/testkit"
)

// used creates a closed store in which a send to some users is recorded.
func used(t *testing.T, config Config, message string) {
	t.Helper()
	s := reopen(t, config)
	verdicts, err := filterAll(s, message, manyUsers(1000)...)
	require.NoError(t, err)
	requireAll(t, capping.Allowed, verdicts)
	require.NoError(t, s.Close())
}

func refused(t *testing.T, config Config, why ...string) {
	t.Helper()
	_, err := Open(context.Background(), config)
	require.Error(t, err)
	for _, part := range append(why, config.Path) {
		require.ErrorContains(t, err, part)
	}
}

// moveAll moves the content of a directory into a new directory.
func moveAll(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(to, 0o755))
	files, err := os.ReadDir(from)
	require.NoError(t, err)
	for _, file := range files {
		require.NoError(t, os.Rename(filepath.Join(from, file.Name()), filepath.Join(to, file.Name())))
	}
}

func copyAll(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
}

// TestCreated checks that a new empty store logs a warning, and that Open refuses to create one with
// MustExist.
func TestCreated(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "log.db")
	refused(t, Config{Path: path, MustExist: true}, "the store does not exist, and the setting 'create' is false")
	require.NoDirExists(t, filepath.Dir(path), "what is refused changes nothing")
	var said testkit.Log
	logger := slog.New(slog.NewTextHandler(&said, nil))
	for _, created := range []bool{true, false} {
		s, err := Open(context.Background(), Config{Path: path, MustExist: !created, Logger: logger})
		require.NoError(t, err)
		health := s.Health(context.Background())
		require.Equal(t, path, health.Path)
		require.Equal(t, created, len(health.Warnings) == 1, health.Warnings)
		require.NoError(t, s.Close())
	}
	require.Equal(t, 1, strings.Count(said.String(), "level=WARN msg=\"an empty embedded store was created"))
	require.Equal(t, 2, strings.Count(said.String(), "path="+path))
}

// TestEmptied removes a store's files and restores them. An unmounted volume, or a cleaned or recreated
// directory, has the same effect.
func TestEmptied(t *testing.T) {
	t.Parallel()
	config := Config{Path: filepath.Join(t.TempDir(), "log.db")}
	aside := config.Path + ".aside"
	used(t, config, "m")
	id := config.Path + ".id"
	moveAll(t, config.Path, aside)
	refused(t, config, "the store is missing", id, "mount its volume", "remove the file")
	require.NoError(t, os.Remove(config.Path))
	refused(t, config, "the store is missing", id)
	require.NoDirExists(t, config.Path)

	// Another store is in the directory.
	require.NoError(t, os.Rename(id, id+".aside"))
	used(t, config, "other")
	require.NoError(t, os.Rename(id+".aside", id))
	refused(t, config, "the store in this directory is not the store that file", id)
	require.NoError(t, os.RemoveAll(config.Path))

	moveAll(t, aside, config.Path)
	s := reopen(t, config)
	verdicts, err := filterAll(s, "m", manyUsers(1000)...)
	require.NoError(t, err)
	requireAll(t, capping.Replayed, verdicts)
	require.NoError(t, s.Close())

	// An operator starts with an empty store on purpose, as the error says.
	require.NoError(t, os.RemoveAll(config.Path))
	require.NoError(t, os.Remove(id))
	used(t, config, "m")
}

// TestManifestGone removes the manifest but leaves the data of a store.
func TestManifestGone(t *testing.T) {
	t.Parallel()
	config := Config{Path: filepath.Join(t.TempDir(), "log.db")}
	used(t, config, "m")
	for _, pattern := range []string{"MANIFEST-*", "marker.*"} {
		files, err := filepath.Glob(filepath.Join(config.Path, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			require.NoError(t, os.Remove(file))
		}
		refused(t, config, "")
	}
	require.NoError(t, os.Remove(config.Path+".id"))
	refused(t, config, "lacks its manifest")
}

// TestLogGone kills a store and removes its write-ahead log with all sends. Pebble would open the database
// without these sends.
func TestLogGone(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir()}
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), crashDir+"="+config.Path)
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	readTold(t, stdout, 8_000, child.Process.Kill)
	_ = child.Wait() // the process was killed
	logs, err := filepath.Glob(filepath.Join(config.Path, "*.log"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)
	for _, log := range logs {
		require.NoError(t, os.Rename(log, log+".aside"))
	}
	listed, err := os.ReadFile(filepath.Join(config.Path, database.NotesFile))
	require.NoError(t, err)
	newest := "" // a kill may come between the creation of a log and its first record: only listed logs have sends
	for name := range strings.FieldsSeq(string(listed)) {
		if strings.HasSuffix(name, ".log") {
			newest = name
		}
	}
	require.NotEmpty(t, newest)
	refused(t, config, "files with the newest sends of the store are "+
		"missing: ", newest, "remove the file "+
		filepath.Join(config.Path, database.NotesFile))
	for _, log := range logs {
		require.NoError(t, os.Rename(log+".aside", log))
	}
	s := reopen(t, config)
	require.NoError(t, s.Close())
}

// TestLogCut truncates the write-ahead log of a closed store.
func TestLogCut(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir()}
	used(t, config, "m")
	logs, err := filepath.Glob(filepath.Join(config.Path, "*.log"))
	require.NoError(t, err)
	require.NoError(t, os.Truncate(logs[len(logs)-1], 0))
	refused(t, config, "lacks its newest sends", config.Path+".id")
}

// TestOneMarkIsMissing opens a store that lacks exactly its newest mark, and therefore the sends before that mark.
func TestOneMarkIsMissing(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir()}
	used(t, config, "m")
	known := map[string]any{}
	content, err := os.ReadFile(config.Path + ".id")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &known))
	known["mark"] = known["mark"].(float64) + 1
	content, err = json.Marshal(known)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config.Path+".id", content, 0o600))
	refused(t, config, "the store lacks its newest sends")
}

// TestOlderCopy restores an older copy of the files, and then continues with it on purpose.
func TestOlderCopy(t *testing.T) {
	t.Parallel()
	config := Config{Path: filepath.Join(t.TempDir(), "log.db")}
	used(t, config, "first")
	copyAll(t, config.Path, config.Path+".copy")
	used(t, config, "second")
	require.NoError(t, os.RemoveAll(config.Path))
	require.NoError(t, os.Rename(config.Path+".copy", config.Path))
	refused(t, config, "the store lacks its newest sends", "an older copy was restored")
	require.NoError(t, os.Remove(config.Path+".id"))
	used(t, config, "second")
}

// TestEarlierVersionInBetween opens a used store with an earlier version, which does not write FILES.
func TestEarlierVersionInBetween(t *testing.T) {
	t.Parallel()
	config := Config{Path: t.TempDir()}
	used(t, config, "m")
	notes, err := os.ReadFile(filepath.Join(config.Path, database.NotesFile))
	require.NoError(t, err)
	used(t, config, "n")
	// The earlier version leaves the old list.
	require.NoError(t, os.WriteFile(filepath.Join(config.Path, database.NotesFile), notes, 0o600))
	require.NotContains(t, string(notes), "nothing")
	used(t, config, "o")
	s := reopen(t, config)
	require.Len(t, logOf(t, s, 7), 3)
	require.NoError(t, s.Close())
}

// TestFilesGoneWhileOpen empties the directory of an open store.
func TestFilesGoneWhileOpen(t *testing.T) {
	t.Parallel()
	config := Config{Path: filepath.Join(t.TempDir(), "log.db"), SweepInterval: time.Millisecond}
	s := reopen(t, config)
	_, err := filterAll(s, "m", manyUsers(1000)...)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(config.Path))
	testkit.Eventually(t, func() bool { return s.Health(context.Background()).State == "down" })
	requireDown(t, s, "removed or replaced while the store was open")
	_ = s.Close() // errors of a broken database do not matter
	refused(t, config, "the store is missing")
}
