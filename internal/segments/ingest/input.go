package ingest

import (
	"fmt"
	"strings"

	"capper/internal/ids"
	"capper/internal/segments/ingest/format"
)

// FinalNewline says whether the last line of a text, CSV, TSV or NDJSON file must end in a line break.
type FinalNewline string

// For files of more than 16 KiB, newlineAuto requires a line break at the end, because nothing else shows whether a
// text file is truncated. For NDJSON files, newlineAuto requires no line break at the end, because the closing brace of
// the last object shows that the file is complete.
const (
	newlineAuto     FinalNewline = ""
	newlineRequired FinalNewline = "required"
	newlineOptional FinalNewline = "optional"
)

// Known reports whether f is one of the defined values of FinalNewline.
func (f FinalNewline) Known() bool {
	return f == newlineAuto || f == newlineRequired || f == newlineOptional
}

// An Input names one input file of a build, or a pattern that matches several files, together with the settings to read
// them.
type Input struct {
	// Path is a file, a pattern with * ? [ ], s3://bucket/key (also with a pattern), or "-" for
	// standard input.
	Path   string
	Format Format
	Header format.Header
	// IDColumn is the column of the ids: a name, or a number from 1. Empty means the column user_id if the header has
	// it, else the only column with a usual name of a user's id, else the first. If the header only names ids of other
	// things, such as orders, reading fails. NDJSON and Parquet need a name; empty means user_id.
	IDColumn string
	// SegmentColumn is the column of the names in a table. Empty means the column segment, else the
	// second column.
	SegmentColumn string
	Delimiter     Delimiter
	// Quote and Escape are the special characters of CSV and TSV. Zero values mean the quote " without
	// an escape for CSV, and the escape \ without a quote for TSV.
	Quote, Escape format.Mark
	Expect        Expect
	// FinalNewline applies to text, CSV, TSV and NDJSON files.
	FinalNewline FinalNewline
}

// Delimiter is the byte that separates the columns of CSV and TSV files. 0 means a comma for CSV and a tab for TSV.
type Delimiter byte

// UnmarshalText parses one byte, or the two characters \t for a tab.
func (d *Delimiter) UnmarshalText(text []byte) error {
	s := string(text)
	if s == `\t` {
		s = "\t"
	}
	if len(s) != 1 || strings.ContainsAny(s, "\"\r\n") {
		return fmt.Errorf("%q: must be one byte that is not a quote or line break", s)
	}
	*d = Delimiter(s[0])
	return nil
}

// stdin is the path that stands for standard input.
const stdin = format.Stdin

// delimited returns the options for reading the input as text, CSV or TSV.
func (in *Input) delimited(kind Format, table bool, scheme *ids.Scheme) format.DelimitedOptions {
	kinds := map[Format]format.Kind{Text: format.Text, csv: format.CSV, tsv: format.TSV}
	return format.DelimitedOptions{
		Kind: kinds[kind], Header: in.Header, IDColumn: in.IDColumn, SegmentColumn: in.SegmentColumn, Table: table,
		Delimiter: byte(in.Delimiter), Quote: in.Quote, Escape: in.Escape, Scheme: scheme,
	}
}
