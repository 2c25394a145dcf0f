package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"capper/internal/segments/ingest/format"
	"capper/internal/terminal"
)

// A badRowList writes the bad rows of the inputs to the file of the flag --bad-rows-to, one JSON object per line. The
// file of bad rows has a temporary name until the command has read all inputs, or until an error ends the reading.
type badRowList struct {
	mu   sync.Mutex
	file *terminal.File
	out  *bufio.Writer
	json *json.Encoder
	err  error // first error
}

func newBadRowList(path string) (*badRowList, error) {
	file, err := terminal.CreateFile(path)
	if err != nil {
		return nil, err
	}
	l := &badRowList{file: file, out: bufio.NewWriterSize(file, 1<<16)}
	l.json = json.NewEncoder(terminal.NewWriter(l.out)) // escapes control characters for terminals
	l.json.SetEscapeHTML(false)
	return l, nil
}

// The method "add" writes bad rows to the file of the flag --bad-rows-to. The method "add" is safe for concurrent use.
func (l *badRowList) add(bad []format.Bad) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range bad {
		if l.err == nil {
			l.err = l.json.Encode(&bad[i])
		}
	}
}

func (l *badRowList) close() error {
	defer l.file.Abort()
	if err := errors.Join(l.err, l.out.Flush()); err != nil {
		return fmt.Errorf("write --bad-rows-to: %w", err)
	}
	return l.file.Commit()
}

// reportedRows is the maximum number of bad rows in the text report. The error text and the JSON report may contain
// more bad rows.
const reportedRows = 5

// printBadRows prints some bad rows of the inputs, and the names of the files that contain bad rows.
func (r *buildReport) printBadRows(w io.Writer) {
	if r.BadRows == 0 {
		return
	}
	fmt.Fprintf(w, "bad rows: %d\n", r.BadRows)
	for _, f := range r.Files {
		if f.Bad > 0 {
			fmt.Fprintf(w, "  %s: %d of %d rows\n", f.File, f.Bad, f.Rows+f.Bad)
		}
	}
	for _, row := range r.BadRowSamples[:min(len(r.BadRowSamples), reportedRows)] {
		fmt.Fprintf(w, "  %s\n", row)
	}
}
