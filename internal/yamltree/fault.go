package yamltree

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Fault is one error in a YAML document, with its position and path.
type Fault struct {
	Line, Column int    // counted from 1; 0: the fault concerns the whole text
	Path         string // such as limits.segments.vip[2].window; "" for the text as a whole
	Rule         string // the broken rule and the actual value
	Empty        bool   // the file contains no document
}

func (f *Fault) Error() string {
	text := f.Rule
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	if f.Line == 0 {
		return text
	}
	return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, text)
}

// The method In returns the error text with the name of the file, in the form file:line:column: path: rule.
func (f *Fault) In(file string) string {
	if f.Line == 0 {
		return file + ": " + f.Error()
	}
	return file + ":" + f.Error()
}

// The type Faults lists all errors in a file.
type Faults struct {
	File string
	List []Fault
}

// Error returns a line for each fault, in the form file:line:column: path: rule.
func (f *Faults) Error() string {
	lines := make([]string, len(f.List))
	for i := range f.List {
		lines[i] = f.List[i].In(f.File)
	}
	return strings.Join(lines, "\n")
}

// The method Sorted sorts the faults f by line and column, and returns f.
func (f *Faults) Sorted() *Faults {
	slices.SortStableFunc(f.List, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f
}

// The function Counted adds a first line with the number of faults to err, if err contains several faults. If err is a
// single fault or an error of another type, Counted returns err unchanged.
func Counted(err error) error {
	var f *Faults
	if !errors.As(err, &f) || len(f.List) < 2 {
		return err
	}
	return fmt.Errorf("%s: %d faults\n%w", f.File, len(f.List), err)
}
