package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"capper/internal/objects"
)

// Format is how a file spells its ids.
type Format string

// Formats. Auto decides by the file's name, and where that says nothing by its first bytes.
const (
	Auto    Format = ""
	Text    Format = "text"
	CSV     Format = "csv"
	TSV     Format = "tsv"
	NDJSON  Format = "ndjson"
	Parquet Format = "parquet"
	Roaring Format = "roaring"
)

// Formats lists what can be asked for by name.
var Formats = []Format{Text, CSV, TSV, NDJSON, Parquet, Roaring}

// Known reports whether the format is one of Formats.
func (f Format) Known() bool { return slices.Contains(Formats, f) }

// Header says whether the first record of a CSV, TSV or text file names the columns.
type Header string

// HeaderAuto takes the first record for a header when a column is asked for by
// name, or when it holds no number and the name of an id, such as user_id, customerId or order_id
// (in the id's column, if that is asked for by number).
const (
	HeaderAuto Header = ""
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// FinalNewline says whether the last line of text, CSV, TSV and NDJSON has to end in a line break.
type FinalNewline string

// NewlineAuto asks for it in files of more than 16 KiB: without it, a file that was cut off cannot be told
// from a whole one. The last object of an NDJSON shows by its brace that it is whole, and needs none.
const (
	NewlineAuto     FinalNewline = ""
	NewlineRequired FinalNewline = "required"
	NewlineOptional FinalNewline = "optional"
)

// Known reports whether f is one of the constants.
func (f FinalNewline) Known() bool {
	return f == NewlineAuto || f == NewlineRequired || f == NewlineOptional
}

// Input is one file or one pattern of files.
type Input struct {
	// Path of a file, a pattern with * ? [ ], s3://bucket/key (also a pattern), or "-" for standard input.
	Path   string
	Format Format
	Header Header
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
	Quote, Escape Mark
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
		return fmt.Errorf("%q: must be one byte, no quote and no line break", s)
	}
	in.Delimiter = s[0]
	return nil
}

// Stdin is the path of standard input.
const Stdin = "-"

// file is one file of an expanded input.
type file struct {
	name  string
	input Input
	of    int // index of its input
}

// expand replaces patterns by the files that match, in order. A pattern
// without a match is an error: a job whose export is late must not publish
// empty segments.
func (r *Reader) expand(ctx context.Context, inputs []Input) ([]file, error) {
	var files []file
	stdins := 0
	for i, in := range inputs {
		if in.Path == Stdin {
			stdins++
			files = append(files, file{name: Stdin, input: in, of: i})
			continue
		}
		found, err := r.files(in.Path).Glob(ctx, in.Path)
		if err != nil {
			return nil, err
		}
		if len(found.Names) == 0 {
			return nil, noMatch(in.Path, found.LeftOut)
		}
		r.leftOut = append(r.leftOut, found.LeftOut...)
		for _, name := range found.Names {
			files = append(files, file{name: name, input: in, of: i})
		}
	}
	if stdins > 1 {
		return nil, fmt.Errorf("standard input is there %d times, it can be read once", stdins)
	}
	return files, nil
}

func noMatch(pattern string, leftOut []string) error {
	if len(leftOut) == 0 {
		return fmt.Errorf("no file matches %q", pattern)
	}
	return fmt.Errorf("no file matches %q but %d that are no data by their names, such as %q", pattern, len(leftOut), leftOut[0])
}

func (r *Reader) files(name string) objects.Files {
	if strings.HasPrefix(name, "s3://") {
		return r.s3
	}
	return objects.LocalFiles{}
}

// formatOf decides a file's format: what was asked for, else its extension
// (that of a compression left aside), else Auto, for sniff to decide.
func formatOf(f file) Format {
	if f.input.Format != Auto {
		return f.input.Format
	}
	name, _ := withoutPacking(f.name)
	dot := strings.LastIndexByte(name, '.')
	switch name[dot+1:] {
	case "txt", "text", "ids":
		return Text
	case "csv":
		return CSV
	case "tsv", "tab":
		return TSV
	case "ndjson", "jsonl", "json":
		return NDJSON
	case "parquet", "pq":
		return Parquet
	case "roaring", "bitmap", "rbm":
		return Roaring
	}
	return Auto
}

// withoutPacking is a name in lower case without the extension of its
// compression, and which compression that extension says, if any.
func withoutPacking(name string) (plain, packing string) {
	name = strings.ToLower(name)
	for ext, packing := range map[string]string{".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd"} {
		if plain, ok := strings.CutSuffix(name, ext); ok {
			return plain, packing
		}
	}
	return name, ""
}

// sniff decides by the first bytes of a file whose name says nothing.
func sniff(head []byte) Format {
	switch {
	case strings.HasPrefix(string(head), "PAR1"):
		return Parquet
	case len(head) >= 4 && (head[0] == 0x3a || head[0] == 0x3b) && head[1] == 0x30:
		return Roaring
	case strings.HasPrefix(string(head), "{"):
		return NDJSON
	}
	line, _, _ := strings.Cut(string(head), "\n")
	switch {
	case strings.ContainsRune(line, '\t'):
		return TSV
	case strings.ContainsAny(line, ",\""):
		return CSV
	}
	return Text
}
