package ingest

import (
	"fmt"
	"time"
)

// An Expect is the minimum content of an input. With an Expect, a build detects an incomplete export before a publish.
// The zero Expect allows any content.
type Expect struct {
	MinFiles int64
	MinRows  int64 // rows with an id, in all files of the input
	// NewerThan is the maximum age of each file, to detect an export that did not run and left an old file. 0 allows
	// any age.
	NewerThan time.Duration
}

// The method Shortfalls returns a text about each input that had less content than its Expect requires.
func (r *reader) Shortfalls() []string { return r.shortfalls }

// The method "expect" compares the reports about the files of each input with the input's Expect (minimum content).
func (r *reader) expect(inputs []Input, files []file, reports []FileReport) {
	for i, in := range inputs {
		var count, rows int64
		for k, f := range files {
			if f.of != i {
				continue
			}
			count++
			rows += reports[k].Rows
			r.expectYoung(in, reports[k])
		}
		if count < in.Expect.MinFiles {
			r.noteShortfall("%s: %d files, at least %d are expected (min_files)", in.Path, count, in.Expect.MinFiles)
		}
		if rows < in.Expect.MinRows {
			r.noteShortfall("%s: %d rows with a user, at least %d are expected (min_rows)", in.Path, rows,
				in.Expect.MinRows)
		}
	}
}

func (r *reader) expectYoung(in Input, f FileReport) {
	if in.Expect.NewerThan == 0 {
		return
	}
	if f.ChangedAt == nil {
		r.noteShortfall("%s: the file must have been written less than %s ago (newer_than), but its time is unknown",
			f.File,
			in.Expect.NewerThan)
		return
	}
	if age := r.cfg.Now.Sub(*f.ChangedAt); age > in.Expect.NewerThan {
		r.noteShortfall("%s was written %s ago, on %s: it must be less than %s (newer_than)",
			f.File, age.Round(time.Second), f.ChangedAt.UTC().Format(time.RFC3339), in.Expect.NewerThan)
	}
}

func (r *reader) noteShortfall(format string, args ...any) {
	r.shortfalls = append(r.shortfalls, fmt.Sprintf(format, args...))
}
