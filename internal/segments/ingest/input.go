package ingest

import (
	"fmt"
	"strings"

	"capper/internal/ids"
	"capper/internal/segments/ingest/format"
)

// The type FinalNewline is the setting for the last line of a text, CSV, TSV or NDJSON file: a line break at the end is
// required or optional.
type FinalNewline string

// For files of more than 16 KiB, newlineAuto requires a line break at the end, because without it the file may be
// truncated. For NDJSON files, newlineAuto requires no line break at the end, because the closing brace of the last
// object shows that the file is complete.
const (
	newlineAuto     FinalNewline = ""
	newlineRequired FinalNewline = "required"
	newlineOptional FinalNewline = "optional"
)

// Known reports whether f is one of the defined values of FinalNewline.
func (f FinalNewline) Known() bool {
	return f == newlineAuto || f == newlineRequired || f == newlineOptional
}

// An Input contains the name of an input file of a build, or a pattern for several files, together with the settings
// for reading these files.
type Input struct {
	// Path is a file, a pattern with * ? [ ], an object s3://bucket/key (also as a pattern), or "-" for standard input.
	Path   string
	Format Format
	Header format.Header
	// IDColumn is the column of the ids: a name, or a number from 1. If IDColumn is empty, the parser uses the column
	// "user_id", else the only column with a usual name of a user id, else the first column. If the header names only
	// ids of other things, such as orders, the parser returns an error. NDJSON and Parquet need a name; the default is
	// user_id.
	IDColumn string
	// SegmentColumn is the column of the names in a table. If SegmentColumn is empty, the parser uses the column
	// "segment", else the second column.
	SegmentColumn string
	Delimiter     Delimiter
	// Quote and Escape are the special characters of CSV and TSV. By default, CSV has the quote " and no escape
	// character, and TSV has the escape character \ and no quote.
	Quote, Escape format.Mark
	Expect        Expect
	// FinalNewline is the setting for the end of text, CSV, TSV and NDJSON files.
	FinalNewline FinalNewline
}

// A Delimiter is the byte that separates the columns of CSV and TSV files. By default (0), CSV has a comma and TSV a
// tab.
type Delimiter byte

// UnmarshalText parses a Delimiter: one byte, or the two characters \t for a tab.
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

// The path stdin stands for standard input.
const stdin = format.Stdin

// The method "delimited" returns the options for reading the input as text, CSV or TSV.
func (in *Input) delimited(kind Format, table bool, scheme *ids.Scheme) format.DelimitedOptions {
	kinds := map[Format]format.Kind{Text: format.Text, csv: format.CSV, tsv: format.TSV}
	return format.DelimitedOptions{
		Kind: kinds[kind], Header: in.Header, IDColumn: in.IDColumn, SegmentColumn: in.SegmentColumn, Table: table,
		Delimiter: byte(in.Delimiter), Quote: in.Quote, Escape: in.Escape, Scheme: scheme,
	}
}
