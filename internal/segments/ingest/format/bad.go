package format

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bad is a row that holds no user id, or cannot be read.
type Bad struct {
	File string `json:"file"`
	// Row counted from 1: the line of a text, CSV, TSV or NDJSON file, the row of a Parquet file.
	Row    int64  `json:"row"`
	Lines  int64  `json:"lines,omitempty"` // that it spans, when these are several
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

// Short is the beginning of the value.
func (b Bad) Short() string { return Clip([]byte(b.Value)) }

// Reasons of bad rows that several formats give.
const (
	reasonEmpty     = "no user id"
	reasonNoSegment = "no segment"

	reasonNotID = "not a user id (0 to 4294967295)"
)

// maxValue is how many bytes of a bad value are kept, and maxShown how many people are shown.
const (
	maxValue = 1024
	maxShown = 64
)

// Clip is the beginning of a value, as people are shown it.
func Clip(value []byte) string { return clip(value, maxShown) }

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
