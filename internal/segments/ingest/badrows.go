package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// BadRow is a row that holds no user id, or cannot be read.
type BadRow struct {
	File string `json:"file"`
	// Row counted from 1: the line of a text, CSV, TSV or NDJSON file, the row of a Parquet file.
	Row    int64  `json:"row"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

func (b BadRow) String() string {
	return fmt.Sprintf("%s:%d: %q: %s", b.File, b.Row, b.Value, b.Reason)
}

// Reasons of bad rows.
const (
	reasonNotID   = "not a user id (0 to 4294967295)"
	reasonEmpty   = "no user id"
	reasonColumns = "%d columns, the first row has %d"
	reasonQuote   = "a quote that does not begin or end a field"
)

// maxSamples is how many bad rows are kept with their values; all are counted.
const maxSamples = 20

// maxValue is how many bytes of a bad value are kept.
const maxValue = 64

func clip(value []byte) string {
	if len(value) > maxValue {
		return string(value[:maxValue]) + "…"
	}
	return string(value)
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
	kept := append(t.samples[file], rows...)
	slices.SortFunc(kept, func(a, b BadRow) int { return cmp.Compare(a.Row, b.Row) })
	t.samples[file] = kept[:min(len(kept), maxSamples)]
}

// first returns the first samples in order of files and rows.
func (t *tally) first(files int) []BadRow {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []BadRow
	for i := range files {
		list = append(list, t.samples[i]...)
	}
	return list[:min(len(list), maxSamples)]
}

// BadRowsError says that more rows were bad than were to be tolerated.
type BadRowsError struct {
	Count     int64
	Tolerated int64
	Samples   []BadRow // the first of them
}

func (e *BadRowsError) Error() string {
	var b strings.Builder
	rows := "rows"
	if e.Count == 1 {
		rows = "row"
	}
	fmt.Fprintf(&b, "%d bad %s", e.Count, rows)
	if e.Tolerated > 0 {
		fmt.Fprintf(&b, ", %d are tolerated", e.Tolerated)
	}
	for _, s := range e.Samples {
		fmt.Fprintf(&b, "\n  %s", s)
	}
	if more := e.Count - int64(len(e.Samples)); more > 0 {
		fmt.Fprintf(&b, "\n  … and %d more", more)
	}
	return b.String()
}
