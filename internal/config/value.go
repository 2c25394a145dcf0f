package config

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"capper/internal/capping"
	"capper/internal/objects"
	"capper/internal/yamltree"
)

// The function "named" returns a reader of a configuration value that must be a string and match the pattern.
func named(to *string, pattern *regexp.Regexp, rule string) yamltree.Field {
	return func(v yamltree.Value) {
		yamltree.Text(to)(v)
		if *to != "" && !pattern.MatchString(*to) {
			v.Fault(rule, *to)
		}
	}
}

// The function "duration" returns a reader of a configuration value that must be a duration from "low" to "high", in
// whole milliseconds.
func duration(to *time.Duration, low, high time.Duration) yamltree.Field {
	return func(v yamltree.Value) {
		if v.IsZero() && low == 0 {
			*to = 0
			return
		}
		s, _ := v.Word()
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			v.Fault("must be a duration such as 30s or 24h, got %s%s", v.Describe(), unitHint(cmp.Or(s, v.Describe())))
		case d < low:
			v.Fault("must be at least %s, got %s", capping.Span(low), s)
		case d > high:
			v.Fault("must be at most %s, got %s", capping.Span(high), s)
		case d%time.Millisecond != 0:
			v.Fault("must be whole milliseconds, got %s", s)
		default:
			*to = d
		}
	}
}

var inDays = regexp.MustCompile(`^([1-9][0-9]{0,3})([dw])$`)

// unitHint returns a hint with the correct notation for a duration without a unit, or in days or weeks. For other
// texts, unitHint returns "". Command-line flags and API calls accept durations in days, but configuration files do
// not.
func unitHint(text string) string {
	if _, err := strconv.Atoi(text); err == nil {
		return fmt.Sprintf("; the unit is missing: write %ss or %sh", text, text)
	}
	m := inDays.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	n, _ := strconv.Atoi(m[1])
	word := "days are"
	if n *= 24; m[2] == "w" {
		word, n = "weeks are", 7*n
	}
	return fmt.Sprintf("; %s no unit here: write %dh", word, n)
}

// The function "opposite" returns a reader of a boolean configuration value that stores the opposite value in a field.
func opposite(to *bool) yamltree.Field {
	return func(v yamltree.Value) {
		said := !*to
		yamltree.Bool(&said)(v)
		*to = !said
	}
}

func address(to *string) yamltree.Field {
	return func(v yamltree.Value) {
		s, ok := v.Text()
		if !ok {
			return
		}
		_, port, err := net.SplitHostPort(s)
		_, portErr := strconv.ParseUint(port, 10, 16)
		if err != nil || portErr != nil {
			v.Fault("must be host:port, port 0 to 65535, got %q", s)
			return
		}
		*to = s
	}
}

// A place is the path of a file or directory that the configuration file or a default value names.
type place struct {
	at yamltree.Value
	to *string
}

// The method path returns a reader of a configuration value that is the path of a file or directory. A relative path
// starts at the directory of the configuration file, and not at the working directory of the process.
func (r *reader) path(to *string) yamltree.Field {
	return func(v yamltree.Value) {
		yamltree.Text(to)(v)
		r.places = append(r.places, place{v, to})
	}
}

// The method locate makes all paths of the configuration absolute, starting at the directory of the configuration file.
func (r *reader) locate(file string, root yamltree.Value) {
	begin, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		root.Absent("").Fault("absolute path cannot be determined: %v", err)
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
	if objects.IsURL(r.Audit.To) {
		byDefault("audit.spool", &r.Audit.Spool)
	}
	if r.Store.Kind == Embedded {
		byDefault("store.embedded.path", &r.Store.Embedded.Path)
	}
	for _, p := range r.places {
		r.locateOne(begin, p)
	}
}

// locateOne records an error for a relative path if nothing exists there, but something exists at the same path
// relative to the working directory. In earlier versions, relative paths started at the working directory. Without
// the error of locateOne, a service after an upgrade would find nothing at the new path and start with an empty
// store. A missing segments cache is allowed.
func (r *reader) locateOne(begin string, p place) {
	if *p.to == "" || filepath.IsAbs(*p.to) {
		return
	}
	given := *p.to
	*p.to = filepath.Join(begin, given)
	if p.to == &r.Audit.To || p.to == &r.Audit.Spool {
		return // for these keys, relative paths never started at the working directory
	}
	before, err := filepath.Abs(given)
	if err != nil || before == *p.to || something(*p.to) || !something(before) {
		return
	}
	if p.to == &r.Segments.Refresher.CacheDir {
		if !cached(before) {
			return
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("%s: is %s, because relative paths begin at this file's "+
			"directory: what is in %s is not used", p.at.Path(), *p.to, before))
		return
	}
	p.at.Fault("means %s, because relative paths begin at this file's directory, but nothing exists there: "+
		"move %s, which earlier versions of capper used, or give an absolute path",
		*p.to, before)
}

// The function "cached" reports whether a directory contains a segments cache. A segments cache consists of folders
// whose names are 16 hexadecimal digits. The directory /var/cache of the system, for example, is not a segments cache.
func cached(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		_, err := hex.DecodeString(e.Name())
		return err == nil && len(e.Name()) == 16
	})
}

// The function "something" reports whether the path is a file or a non-empty directory.
func something(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err == nil
	}
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) > 0
}
