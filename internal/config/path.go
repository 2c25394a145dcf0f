package config

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// place is a path that the file gives, or that is given by default.
type place struct {
	at value
	to *string
}

// path reads the path of a file or directory. One that is relative begins at
// the directory of the configuration file, wherever the program is started.
func path(to *string) field {
	return func(v value) {
		text(to)(v)
		v.reader.places = append(v.reader.places, place{v, to})
	}
}

// locate makes all paths absolute.
func (c *Config) locate(file string, r *reader) {
	begin, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		r.faults = append(r.faults, Fault{Rule: fmt.Sprintf("where it lies cannot be told: %v", err)})
		return
	}
	byDefault := func(path string, to *string) {
		for _, p := range r.places {
			if p.to == to {
				return
			}
		}
		r.places = append(r.places, place{value{path: path, reader: r}, to})
	}
	byDefault("segments.cache_dir", &c.Segments.CacheDir)
	if c.Store.Kind == Embedded {
		byDefault("store.embedded.path", &c.Store.Embedded.Path)
	}
	for _, p := range r.places {
		c.locateOne(begin, p)
	}
}

// locateOne refuses a path at which nothing is and before which, when relative
// paths began at the working directory, something was: a store would begin
// empty. Without its cache the service does.
func (c *Config) locateOne(begin string, p place) {
	if *p.to == "" || filepath.IsAbs(*p.to) {
		return
	}
	given := *p.to
	*p.to = filepath.Join(begin, given)
	before, err := filepath.Abs(given)
	if err != nil || before == *p.to || something(*p.to) || !something(before) {
		return
	}
	if p.to == &c.Segments.CacheDir {
		if !cached(before) {
			return
		}
		c.Warnings = append(c.Warnings, fmt.Sprintf("%s: is %s, as relative paths begin at this file's directory: what is in %s is not used", p.at.path, *p.to, before))
		return
	}
	p.at.fault("is %s, as relative paths begin at this file's directory, where there is nothing, and there is %s, where earlier versions looked: move it, or give an absolute path",
		*p.to, before)
}

// cached reports whether a directory holds what a cache of segments does,
// folders named by 16 hex digits: /var/cache is no such.
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
