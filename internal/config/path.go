package config

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"capper/internal/yamltree"
)

// place is a path that the file gives, or that is given by default.
type place struct {
	at yamltree.Value
	to *string
}

// path reads the path of a file or directory. One that is relative begins at
// the directory of the configuration file, wherever the program is started.
func (r *reader) path(to *string) yamltree.Field {
	return func(v yamltree.Value) {
		yamltree.Text(to)(v)
		r.places = append(r.places, place{v, to})
	}
}

// locate makes all paths absolute.
func (r *reader) locate(file string, root yamltree.Value) {
	begin, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		root.Absent("").Fault("its absolute path cannot be found: %v", err)
		return
	}
	byDefault := func(path string, to *string) {
		for _, p := range r.places {
			if p.to == to {
				return
			}
		}
		r.places = append(r.places, place{root.Absent(path), to})
	}
	byDefault("segments.cache_dir", &r.Segments.Refresher.CacheDir)
	if r.Store.Kind == Embedded {
		byDefault("store.embedded.path", &r.Store.Embedded.Path)
	}
	for _, p := range r.places {
		r.locateOne(begin, p)
	}
}

// locateOne refuses a path at which nothing is and before which, when relative
// paths began at the working directory, something was: a store would begin
// empty. Without its cache the service does.
func (r *reader) locateOne(begin string, p place) {
	if *p.to == "" || filepath.IsAbs(*p.to) {
		return
	}
	given := *p.to
	*p.to = filepath.Join(begin, given)
	before, err := filepath.Abs(given)
	if err != nil || before == *p.to || something(*p.to) || !something(before) {
		return
	}
	if p.to == &r.Segments.Refresher.CacheDir {
		if !cached(before) {
			return
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s: is %s, as relative paths begin at this file's directory: what is in %s is not used", p.at.Path(), *p.to, before))
		return
	}
	p.at.Fault("is %s, as relative paths begin at this file's directory, where there is nothing, and there is %s, where earlier versions looked: move it, or give an absolute path",
		*p.to, before)
}

// cached reports whether a directory holds what a cache of segments does,
// folders named by 16 hex digits: /var/cache is not one.
func cached(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		_, err := hex.DecodeString(e.Name())
		return err == nil && len(e.Name()) == 16
	})
}

// something reports whether there is a file, or a directory that is not empty.
func something(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err == nil
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) > 0
}
