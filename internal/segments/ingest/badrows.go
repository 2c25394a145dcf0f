package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"capper/internal/segments/ingest/format"
)

// maxSamples is the maximum number of bad rows that a build's report shows. A build counts all bad rows.
const maxSamples = 20

// The struct badRows counts the bad rows of all input files and keeps the first bad rows of each file. A badRows is
// safe for concurrent use.
type badRows struct {
	mu      sync.Mutex
	count   int64
	samples map[int][]format.Bad // by index of the file
}

func (b *badRows) add(file int, bad []format.Bad, count int64) {
	if count == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count += count
	if b.samples == nil {
		b.samples = map[int][]format.Bad{}
	}
	kept := append(b.samples[file], bad[:min(len(bad), maxSamples)]...)
	slices.SortFunc(kept, func(x, y format.Bad) int { return cmp.Compare(x.Row, y.Row) })
	b.samples[file] = kept[:min(len(kept), maxSamples)]
}

// The method "first" returns some of the bad rows for a report, in the order of files and rows. If many files have bad
// rows, the result contains a few rows of each file, so that one file does not hide the others.
func (b *badRows) first(files int) []format.Bad {
	b.mu.Lock()
	defer b.mu.Unlock()
	each := max(maxSamples/max(len(b.samples), 1), 1)
	var list []format.Bad
	for i := range files {
		kept := b.samples[i]
		list = append(list, kept[:min(len(kept), each)]...)
	}
	list = slices.Clone(list[:min(len(list), maxSamples)])
	for i := range list {
		list[i].Value = list[i].Short()
	}
	return list
}

// BadRowsError reports that more rows of the input files are bad than the build tolerates.
type BadRowsError struct {
	Count     int64
	Tolerated Tolerance
	Files     []FileReport // files without a good row, or with too many bad rows
	Samples   []format.Bad // the first bad rows
}

func (e *BadRowsError) Error() string {
	var b strings.Builder
	noun := "rows"
	if e.Count == 1 {
		noun = "row"
	}
	fmt.Fprintf(&b, "%d bad %s", e.Count, noun)
	if e.Tolerated != (Tolerance{}) {
		fmt.Fprintf(&b, ", %s are tolerated", e.Tolerated)
	}
	for _, f := range e.Files[:min(len(e.Files), maxSamples)] {
		if f.Rows == 0 {
			fmt.Fprintf(&b, "\n  %s: all %d rows are bad: does the file contain user ids?", f.File, f.Bad)
			if between := e.between(f.File); between != "" {
				fmt.Fprintf(&b, " If %s separates its columns, set the delimiter", between)
			}
		} else {
			fmt.Fprintf(&b, "\n  %s: %d of %d rows are bad", f.File, f.Bad, f.Rows+f.Bad)
		}
	}
	for _, s := range e.Samples {
		fmt.Fprintf(&b, "\n  %s", s)
	}
	if more := e.Count - shown(e.Samples); more > 0 {
		fmt.Fprintf(&b, "\n  … and %d more", more)
	}
	return b.String()
}

// If all known bad rows of the file have a common character, such as ";", it probably separates the columns. The method
// "between" returns this character in quotes. If the bad rows have no common character, the method "between" returns
// "".
func (e *BadRowsError) between(file string) string {
	var rows []format.Bad
	for _, s := range e.Samples {
		if s.File == file {
			rows = append(rows, s)
		}
	}
	for _, c := range []string{";", "|", "\t"} {
		lacks := func(s format.Bad) bool { return !strings.Contains(s.Value, c) }
		if len(rows) > 0 && !slices.ContainsFunc(rows, lacks) {
			return strconv.Quote(c)
		}
	}
	return ""
}

// The function "shown" returns the number of lines of the bad rows in the samples, because BadRowsError.Count also
// counts lines.
func shown(samples []format.Bad) (count int64) {
	for _, s := range samples {
		count += max(s.Lines, 1)
	}
	return count
}
