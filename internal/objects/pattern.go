package objects

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A pattern is a parsed pattern for the paths of files. In a pattern, the wildcards * ? [ ] do not match a slash. The
// path element "**" matches any number of directories, including none.
type pattern struct {
	text  string
	parts []string
}

func parsePattern(text string) (*pattern, error) {
	p := &pattern{text: text, parts: strings.Split(text, "/")}
	for _, part := range p.parts {
		if strings.Contains(part, "**") && part != "**" {
			return nil, fmt.Errorf(
				"pattern %q: ** stands for directories and must be a whole path element, such as **/*.csv", text)
		}
		if _, err := path.Match(part, ""); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", text, err)
		}
	}
	return p, nil
}

// The method prefix returns the text of the pattern before the first wildcard.
func (p *pattern) prefix() string { return p.text[:strings.IndexAny(p.text, "*?[")] }

func (p *pattern) anyDepth() bool { return slices.Contains(p.parts, "**") }

// The method sort selects the names that match the pattern, and separates data files from files without data, such as
// hidden files.
func (p *pattern) sort(names []string) Matches {
	var m Matches
	slices.Sort(names)
	for _, name := range names {
		switch ok, data := match(p.parts, strings.Split(name, "/")); {
		case data:
			m.Names = append(m.Names, name)
		case ok:
			m.LeftOut = append(m.LeftOut, name)
		}
	}
	return m
}

// The function match reports whether a file name matches the pattern, and whether the name is that of a data file. The
// argument "parts" holds the path elements of the pattern, and the argument "name" holds those of the file name.
func match(parts, name []string) (ok, data bool) {
	if len(parts) == 0 || len(name) == 0 {
		ok = len(parts) == 0 && len(name) == 0
		return ok, ok
	}
	if parts[0] == "**" {
		ok, data = match(parts[1:], name)
		if len(name) > 1 && !data {
			deeper, deeperData := match(parts, name[1:])
			ok, data = ok || deeper, deeperData && !hidden("**", name[0])
		}
		if len(parts) == 1 && len(name) == 1 { // "**" at the end of the pattern matches all files below
			return true, !hidden("**", name[0])
		}
		return ok, data
	}
	if fits, _ := path.Match(parts[0], name[0]); !fits {
		return false, false
	}
	ok, data = match(parts[1:], name[1:])
	return ok, data && !hidden(parts[0], name[0])
}

// The function "hidden" reports whether a path element, for example "_SUCCESS", is not part of the name of a data file.
// The prefix "." or "_" does not make a path element hidden if the pattern begins with the same character. The ending
// ".crc" does not make a path element hidden if the pattern has the same ending. The folder of a partitioned table,
// such as "_date=2026-01-01", is not hidden.
func hidden(part, name string) bool {
	if strings.HasSuffix(name, ".crc") && !strings.HasSuffix(part, ".crc") {
		return true
	}
	begins := strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") && !strings.Contains(name, "=")
	return begins && !strings.HasPrefix(part, name[:1])
}
