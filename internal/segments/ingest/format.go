package ingest

import (
	"slices"
	"strings"

	"capper/internal/segments/ingest/content"
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

// formatOf decides a file's format: what was asked for, else its extension
// (that of a compression left aside), else Auto, for sniff to decide.
func formatOf(f file) Format {
	if f.input.Format != Auto {
		return f.input.Format
	}
	name, _ := content.WithoutPacking(f.name)
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
