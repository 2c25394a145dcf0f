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

// LocalFiles reads input files from the file system.
type LocalFiles struct{}

var _ Files = LocalFiles{}

// Glob implements Files. Links to directories are entered, by "**" as by "*/". What exists by a name with "[" is
// that file, as a shell gives it for *.csv: as a pattern the name would not match itself. A name with * or ? does,
// and stays a pattern: a file that is called *.csv by accident stands for no other.
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

// Literal is a path as a pattern that matches it alone.
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

// localWalk collects all files below a folder. Links to folders are entered, as
// a pattern's "*/" enters them, but for one that leads back to where the walk is.
type localWalk struct {
	ctx   context.Context
	names []string
}

// walkLocal returns the names of the files below root, none where there is no such folder.
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

// enter walks one folder; above are the resolved paths of those that it was reached through.
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

// isFolder looks through a link. One that leads nowhere is a name like any
// other: if the pattern takes it, opening it says what is wrong.
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
