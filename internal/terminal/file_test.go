package terminal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func names(t *testing.T, folder string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

func TestTheOldFileStaysUntilTheNewOneIsWhole(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a.txt")
	require.NoError(t, WriteFile(path, text("old")))

	f, err := CreateFile(path)
	require.NoError(t, err)
	require.NoError(t, text("half")(f))
	require.Equal(t, "old", content(t, path))
	for _, name := range names(t, folder) {
		require.Equal(t, name != "a.txt", IsPart(name))
	}
	f.Abort()
	require.Equal(t, []string{"a.txt"}, names(t, folder))

	broken := errors.New("the disk is full")
	require.ErrorIs(t, WriteFile(path, func(w io.Writer) error { return errors.Join(text("half")(w), broken) }), broken)
	require.Equal(t, "old", content(t, path))
	require.NoError(t, WriteFile(path, text("new")))
	require.Equal(t, "new", content(t, path))
	require.Equal(t, []string{"a.txt"}, names(t, folder))
}

func TestRightsAndLinksStay(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path, link := filepath.Join(folder, "a.txt"), filepath.Join(folder, "link")
	require.NoError(t, os.WriteFile(path, nil, 0o640))
	require.NoError(t, os.Symlink("a.txt", link))
	require.NoError(t, WriteFile(link, text("new")))
	require.Equal(t, "new", content(t, path))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
	info, err = os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o640, info.Mode().Perm())

	require.NoError(t, os.Symlink("nowhere", filepath.Join(folder, "dangling")))
	require.ErrorContains(t, WriteFile(filepath.Join(folder, "dangling"), text("x")), "points to a file that does "+
		"not exist")
	require.Error(t, WriteFile(folder, text("x")))
	require.Error(t, WriteFile(filepath.Join(folder, "no", "a.txt"), text("x")))
}

func TestPipesAreWrittenInPlace(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	got := make(chan string)
	go func() {
		raw, err := os.ReadFile(path)
		if err != nil {
			raw = []byte(err.Error())
		}
		got <- string(raw)
	}()
	require.NoError(t, WriteFile(path, text("through")))
	require.Equal(t, "through", <-got)
	require.Equal(t, []string{"pipe"}, names(t, folder))
	require.NoError(t, WriteFile(os.DevNull, text("gone")))
}

// What is private is so under any umask and in place of any file; a device stays what it is.
func TestPrivateFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.tar")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Chmod(path, 0o666))
	for range 2 {
		require.NoError(t, WritePrivateFile(path, text("who was sent what")))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		require.NoError(t, os.Remove(path))
	}
	require.NoError(t, WritePrivateFile(os.DevNull, text("nobody")))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotEqual(t, os.FileMode(0o600), info.Mode().Perm())
}
