package ingest

import (
	"context"
	"slices"
	"strings"

	"capper/internal/segments/ingest/format"
)

// Format is the format of an input file.
type Format string

// The constants auto to roaring are the formats of input files. With auto, the extension of the file's name determines
// the format. If the extension is unknown, the first bytes of the file determine the format.
const (
	auto    Format = ""
	Text    Format = "text"
	csv     Format = "csv"
	tsv     Format = "tsv"
	NDJSON  Format = "ndjson"
	Parquet Format = "parquet"
	roaring Format = "roaring"
)

// A formatReader defines how to recognise and read input files of one format.
type formatReader struct {
	format     Format
	title      string   // the format's name in a sentence
	extensions []string // extensions of file names, without the dot
	// If format.CheckKind can recognise this binary format, the field "magic" contains the first bytes of every file.
	// Otherwise, "magic" is empty.
	magic string
	// The function "starts" reports whether a file that begins with the bytes in "head" probably has the format.
	starts func(head []byte) bool
	read   func(f *fileReader, ctx context.Context, src *format.File) error
}

// formatReaders is the only list of file formats. Flags, help texts, build files and tests use the list formatReaders.
// If the name of a file does not determine the format, readerOf tries the formats in reverse order, because the first
// format, text, accepts any bytes.
func formatReaders() []formatReader {
	return []formatReader{
		{Text, "text", []string{"txt", "text", "ids"}, "", func([]byte) bool { return true }, delimitedAs(Text)},
		{csv, "CSV", []string{"csv"}, "", firstLineHas(",\""), delimitedAs(csv)},
		{tsv, "TSV", []string{"tsv", "tab"}, "", firstLineHas("\t"), delimitedAs(tsv)},
		{NDJSON, "NDJSON", []string{"ndjson", "jsonl", "json"}, "", startsWith("{"), (*fileReader).readNDJSON},
		{Parquet, "Parquet", []string{"parquet", "pq"}, "PAR1", startsWith("PAR1"), (*fileReader).readParquet},
		{roaring, "roaring", []string{"roaring", "bitmap", "rbm"}, "", startsLikeRoaring, (*fileReader).readRoaring},
	}
}

// The function "formats" returns the formats that users can request by name.
func formats() (formats []Format) {
	for _, r := range formatReaders() {
		formats = append(formats, r.format)
	}
	return formats
}

// Known reports whether the format is one of those that users can request by name.
func (f Format) Known() bool { return slices.Contains(formats(), f) }

// FormatWords returns two texts about the file formats for the help of commands. In help texts, ${formats} stands for
// the list of the values of a flag, and ${format_titles} stands for the names of the formats in a sentence.
func FormatWords() map[string]string {
	var names, titles []string
	for _, r := range formatReaders() {
		names, titles = append(names, string(r.format)), append(titles, r.title)
	}
	last := len(titles) - 1
	return map[string]string{
		"formats":       strings.Join(names, ", "),
		"format_titles": strings.Join(titles[:last], ", ") + " or " + titles[last],
	}
}

// readerOf returns the formatReader for a file. If the user requests a format, readerOf uses this format. Otherwise,
// the extension of the file's name before an extension such as .gz determines the format. If the extension is unknown,
// the first bytes of the file determine the format. If neither a request, the extension nor the first bytes determine
// the format, readerOf returns false.
func readerOf(f file, head []byte) (formatReader, bool) {
	readers := formatReaders()
	pick := func(has func(r formatReader) bool) (formatReader, bool) {
		if i := slices.IndexFunc(readers, has); i >= 0 {
			return readers[i], true
		}
		return formatReader{}, false
	}
	if f.input.Format != auto {
		return pick(func(r formatReader) bool { return r.format == f.input.Format })
	}
	name, _ := format.WithoutPacking(f.name)
	extension := name[strings.LastIndexByte(name, '.')+1:]
	if r, ok := pick(func(r formatReader) bool { return slices.Contains(r.extensions, extension) }); ok {
		return r, true
	}
	slices.Reverse(readers)
	return pick(func(r formatReader) bool { return r.starts(head) })
}

func delimitedAs(kind Format) func(*fileReader, context.Context, *format.File) error {
	return func(f *fileReader, ctx context.Context, src *format.File) error {
		return f.readDelimited(ctx, src, kind)
	}
}

func startsWith(text string) func([]byte) bool {
	return func(head []byte) bool { return strings.HasPrefix(string(head), text) }
}

func startsLikeRoaring(head []byte) bool {
	return len(head) >= 4 && (head[0] == 0x3a || head[0] == 0x3b) && head[1] == 0x30
}

func firstLineHas(any string) func([]byte) bool {
	return func(head []byte) bool {
		line, _, _ := strings.Cut(string(head), "\n")
		return strings.ContainsAny(line, any)
	}
}
