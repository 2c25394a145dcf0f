package segments

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

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
