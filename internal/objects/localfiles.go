package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// LocalFiles reads the input files of segmentbuild from the file system.
type LocalFiles struct{}

var _ Files = LocalFiles{}

// Glob implements Files. In a pattern, both "**" and "*/" follow symbolic links to directories. If a pattern with "["
// is also the name of an existing file, Glob returns this file and no others. A shell may expand "*.csv" to a file name
// with "[", which does not match itself if it is used as a pattern.
func (LocalFiles) Glob(ctx context.Context, pattern string) (Matches, error) {
	if IsURL(pattern) {
		return Matches{}, fmt.Errorf("%q: must be a path or s3://bucket/key", pattern)
	}
	if !hasWildcard(pattern) || existsLiterally(pattern) {
		return Matches{Names: []string{pattern}}, nil
	}
	rule, err := parsePattern(filepath.ToSlash(filepath.Clean(pattern)))
	if err != nil {
		return Matches{}, err
	}
	if !rule.anyDepth() {
		names, err := filepath.Glob(pattern)
		if err != nil {
			return Matches{}, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		return rule.sort(names), nil
	}
	names, err := walkLocal(ctx, filepath.Dir(rule.prefix()+"x"))
	return rule.sort(names), err
}

func existsLiterally(name string) bool {
	if !strings.Contains(name, "[") {
		return false
	}
	_, err := os.Lstat(name)
	return err == nil
}

// The function Literal returns a pattern that matches the given path and no other path.
func Literal(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", "[*]", "?", "[?]", "[", "[[]").Replace(path)
}

func hasWildcard(pattern string) bool { return strings.ContainsAny(pattern, "*?[") }

// Open implements Files.
func (LocalFiles) Open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, notFound(name, err)
	}
	stat, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	if stat.IsDir() {
		return nil, 0, errors.Join(fmt.Errorf("%s is a directory: name its files, or use a pattern such as %s", name,
			filepath.Join(Literal(name), "*.csv")), f.Close())
	}
	if !stat.Mode().IsRegular() {
		return f, -1, nil
	}
	return f, stat.Size(), nil
}

// A localWalk collects the names of all files below a folder. A localWalk follows symbolic links to folders, like the
// pattern "*/". A localWalk does not follow a link to a folder that contains the link, because the walk would never
// end.
type localWalk struct {
	ctx   context.Context
	names []string
}

// walkLocal returns the names of all files below the folder in the argument "root". If the folder "root" does not
// exist, walkLocal returns no names.
func walkLocal(ctx context.Context, root string) ([]string, error) {
	stat, err := os.Stat(root)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !stat.IsDir() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w := &localWalk{ctx: ctx}
	err = w.enter(root, nil)
	return w.names, err
}

// The method enter collects the names of the files below one folder. The argument "above" contains the resolved paths
// of the folder's parent folders.
func (w *localWalk) enter(folder string, above []string) error {
	place, err := resolved(folder)
	if err != nil || slices.Contains(above, place) {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	above = append(above, place)
	for _, entry := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(folder, entry.Name())
		inside, err := isFolder(path, entry)
		switch {
		case err != nil:
			return err
		case !inside:
			w.names = append(w.names, path)
		default:
			if err := w.enter(path, above); err != nil {
				return err
			}
		}
	}
	return nil
}

func resolved(folder string) (string, error) {
	place, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return "", err
	}
	return filepath.Abs(place)
}

// isFolder reports whether a directory entry is a folder or a symbolic link to a folder. The function isFolder treats a
// dangling link as a file, because a later attempt to open the link returns a clear error.
func isFolder(path string, entry fs.DirEntry) (bool, error) {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.IsDir(), nil
	}
	stat, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return false, nil
	}
	return err == nil && stat.IsDir(), err
}
