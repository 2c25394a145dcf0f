package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing that is wrong with a file.
type Fault struct {
	Line, Column int    // 1-based; 0: the file as a whole
	Path         string // such as limits.segments.vip[2].window; "" for the file as a whole
	Rule         string // what must hold, and what was found instead
}

// Faults is everything wrong with a file, in the order of its lines.
type Faults struct {
	File string
	List []Fault
}

// Error is a line for each fault: file:line:column: path: rule.
func (f *Faults) Error() string {
	lines := make([]string, len(f.List))
	for i, fault := range f.List {
		lines[i] = fault.in(f.File)
	}
	return strings.Join(lines, "\n")
}

func (f Fault) in(file string) string {
	text := file
	if f.Line > 0 {
		text += fmt.Sprintf(":%d:%d", f.Line, f.Column)
	}
	if f.Path != "" {
		text += ": " + f.Path
	}
	return text + ": " + f.Rule
}

func (f *Faults) sorted() *Faults {
	slices.SortStableFunc(f.List, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f
}
