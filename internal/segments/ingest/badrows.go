package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// BadRow is a row that holds no user id, or cannot be read.
type BadRow struct {
	File string `json:"file"`
	// Row counted from 1: the line of a text, CSV, TSV or NDJSON file, the row of a Parquet file.
	Row    int64  `json:"row"`
	Lines  int64  `json:"lines,omitempty"` // that it spans, when these are several
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

func (b BadRow) String() string {
	value := strings.TrimSuffix(b.short(), "…")
	more := ""
	if value != b.short() {
		more = "…"
	}
	if b.Lines > 1 {
		more += fmt.Sprintf(" (%d lines)", b.Lines)
	}
	return fmt.Sprintf("%s:%d: %q%s: %s", b.File, b.Row, value, more, b.Reason)
}

// short is the beginning of the value.
func (b BadRow) short() string { return clip([]byte(b.Value), maxShown) }

// Reasons of bad rows.
const (
	reasonNotID     = "not a user id (0 to 4294967295)"
	reasonEmpty     = "no user id"
	reasonNoSegment = "no segment"
	reasonColumns   = "%d columns, the first row has %d"
	reasonQuote     = "a quote that does not begin or end a field"
	reasonQuoted    = "not a user id: the file is read without quotes (the option quote says otherwise)"
	reasonSwallowed = "a field over several lines that read as rows of their own: a quote or an escape is missing, or one too many"
)

// maxSamples is how many bad rows are kept with their values; all are counted.
const maxSamples = 20

// maxValue is how many bytes of a bad value are kept, and maxShown how many a sample shows.
const (
	maxValue = 1024
	maxShown = 64
)

// clip keeps the first bytes of a value, whole characters of it.
func clip(value []byte, limit int) string {
	if len(value) <= limit {
		return string(value)
	}
	for i := range utf8.UTFMax {
		if utf8.RuneStart(value[limit-i]) {
			limit -= i
			break
		}
	}
	return string(value[:limit]) + "…"
}

// tally counts bad rows and keeps the first of each file. Safe for concurrent use.
type tally struct {
	mu      sync.Mutex
	count   int64
	samples map[int][]BadRow // by file index
}

func (t *tally) add(file int, rows []BadRow, count int64) {
	if count == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count += count
	if t.samples == nil {
		t.samples = map[int][]BadRow{}
	}
	kept := append(t.samples[file], rows[:min(len(rows), maxSamples)]...)
	slices.SortFunc(kept, func(a, b BadRow) int { return cmp.Compare(a.Row, b.Row) })
	t.samples[file] = kept[:min(len(kept), maxSamples)]
}

// first returns the first samples in order of files and rows. With many files
// each has a few: the first must not hide the others.
func (t *tally) first(files int) []BadRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	each := max(maxSamples/max(len(t.samples), 1), 1)
	var list []BadRow
	for i := range files {
		kept := t.samples[i]
		list = append(list, kept[:min(len(kept), each)]...)
	}
	list = slices.Clone(list[:min(len(list), maxSamples)])
	for i := range list {
		list[i].Value = list[i].short()
	}
	return list
}

// BadRowsError says that more rows were bad than were to be tolerated.
type BadRowsError struct {
	Count     int64
	Tolerated Tolerance
	Files     []FileReport // that have no good row, or more bad ones than their share
	Samples   []BadRow     // the first bad rows
}

func (e *BadRowsError) Error() string {
	var b strings.Builder
	rows := "rows"
	if e.Count == 1 {
		rows = "row"
	}
	fmt.Fprintf(&b, "%d bad %s", e.Count, rows)
	if e.Tolerated != (Tolerance{}) {
		fmt.Fprintf(&b, ", %s are tolerated", e.Tolerated)
	}
	for _, f := range e.Files[:min(len(e.Files), maxSamples)] {
		if f.Rows == 0 {
			fmt.Fprintf(&b, "\n  %s: not one good row, %d bad: is this a file of ids?", f.File, f.Bad)
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

// shown is how many of the counted rows the samples stand for.
func shown(samples []BadRow) (rows int64) {
	for _, s := range samples {
		rows += max(s.Lines, 1)
	}
	return rows
}
