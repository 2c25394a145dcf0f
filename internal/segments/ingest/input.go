package ingest

import (
	"fmt"
	"strings"

	"capper/internal/segments/ingest/format"
)

// FinalNewline says whether the last line of text, CSV, TSV and NDJSON has to end in a line break.
type FinalNewline string

// newlineAuto asks for it in files of more than 16 KiB: without it, a file that was cut off cannot be told
// from a whole one. The last object of an NDJSON shows by its brace that it is whole, and needs none.
const (
	newlineAuto     FinalNewline = ""
	newlineRequired FinalNewline = "required"
	newlineOptional FinalNewline = "optional"
)

// Known reports whether f is one of the constants.
func (f FinalNewline) Known() bool {
	return f == newlineAuto || f == newlineRequired || f == newlineOptional
}

// Input is one file or one pattern of files.
type Input struct {
	// Path of a file, a pattern with * ? [ ], s3://bucket/key (also a pattern), or "-" for standard input.
	Path   string
	Format Format
	Header format.Header
	// IDColumn is a column's name, or its number counted from 1. Empty: the
	// column user_id if there is a header with one, else the only one whose name
	// is that of a user's id, else the first, unless the header names ids of other
	// things, which is an error. For NDJSON and Parquet the name, user_id if empty.
	IDColumn string
	// SegmentColumn of a table, likewise. Empty: the column segment, else the second.
	SegmentColumn string
	// Delimiter between columns. 0: comma for CSV, tab for TSV.
	Delimiter byte
	// Quote and Escape of CSV and TSV. Zero: CSV has the quote " and no escape, TSV no quote and the escape \.
	Quote, Escape format.Mark
	Expect        Expect
	// FinalNewline of a text, CSV, TSV or NDJSON file.
	FinalNewline FinalNewline
}

// SetDelimiter sets the delimiter of the columns from its spelling.
func (in *Input) SetDelimiter(s string) error {
	if s == `\t` {
		s = "\t"
	}
	if len(s) != 1 || strings.ContainsAny(s, "\"\r\n") {
		return fmt.Errorf("%q: must be one byte that is not a quote or line break", s)
	}
	in.Delimiter = s[0]
	return nil
}

// stdin is the path of standard input.
const stdin = format.Stdin

// delimited is the input as the options of a text, CSV or TSV.
func (in *Input) delimited(kind Format, table bool) format.DelimitedOptions {
	kinds := map[Format]format.Kind{Text: format.Text, csv: format.CSV, tsv: format.TSV}
	return format.DelimitedOptions{
		Kind: kinds[kind], Header: in.Header, IDColumn: in.IDColumn, SegmentColumn: in.SegmentColumn, Table: table,
		Delimiter: in.Delimiter, Quote: in.Quote, Escape: in.Escape,
	}
}
