package format

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bad describes a bad row of an input file: a row without a valid user id, or a row that the parser cannot read.
type Bad struct {
	File string `json:"file"`
	// Row is the line of a text, CSV, TSV or NDJSON file, or the row of a Parquet file, counted from 1.
	Row    int64  `json:"row"`
	Lines  int64  `json:"lines,omitempty"` // number of lines, if the row spans several
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

func (b Bad) String() string {
	value := strings.TrimSuffix(b.Short(), "…")
	more := ""
	if value != b.Short() {
		more = "…"
	}
	if b.Lines > 1 {
		more += fmt.Sprintf(" (%d lines)", b.Lines)
	}
	return fmt.Sprintf("%s:%d: %q%s: %s", b.File, b.Row, value, more, b.Reason)
}

// Short returns the beginning of the value of a bad row, for display in a report.
func (b Bad) Short() string { return Clip([]byte(b.Value)) }

// The constants reasonEmpty, reasonNoSegment and reasonNotID are reasons for which a row of an input file is bad, in
// several file formats.
const (
	reasonEmpty     = "no user id"
	reasonNoSegment = "no segment"

	reasonNotID = "not a user id (0 to 4294967295)"
)

// maxValue is the maximum number of bytes of a bad row's value that a block keeps. maxShown is the maximum number of
// bytes that reports display.
const (
	maxValue = 1024
	maxShown = 64
)

// Clip returns the beginning of a value for display.
func Clip(value []byte) string { return clip(value, maxShown) }

// The function "clip" cuts a value after at most "limit" bytes, without splitting a character.
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
