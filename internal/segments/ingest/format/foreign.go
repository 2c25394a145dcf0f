package format

import (
	"bytes"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// The list "foreign" contains the first bytes of many kinds of files, so that an error can name the kind of an
// unexpected file. The list also has kinds that package ingest reads; for these kinds, the text explains how to request
// the format.
var foreign = []struct {
	magic  string
	binary bool // true: the first bytes are letters, so other bytes must be binary data
	what   string
}{
	{"BZh", true, "a bzip2 archive: decompress it, or use gzip or zstd"},
	{"\xfd7zXZ\x00", false, "an xz archive: decompress it, or use gzip or zstd"},
	{"\x04\x22\x4d\x18", false, "an lz4 archive: decompress it, or use gzip or zstd"},
	{"\xff\x06\x00\x00sNaPpY", false, "a snappy archive: decompress it, or use gzip or zstd"},
	{"\x1f\x9d", false, "a compress (.Z) archive: decompress it, or use gzip or zstd"},
	{"\x89LZO\x00", false, "an lzop archive: decompress it, or use gzip or zstd"},
	{"\x1f\x8b", false, "compressed twice: a gzip archive inside another"},
	{"\x28\xb5\x2f\xfd", false, "compressed twice: a zstd archive inside another"},
	{"PK\x03\x04", false, "a zip archive (or an Excel file): unpack it, or save it as CSV"},
	{"PK\x05\x06", false, "an empty zip archive"},
	{"7z\xbc\xaf\x27\x1c", false, "a 7z archive: unpack it"},
	{"Rar!\x1a\x07", false, "a rar archive: unpack it"},
	{"ORC", true, "an ORC file: export Parquet or CSV"},
	{"Obj\x01", false, "an Avro file: export Parquet or CSV"},
	{"ARROW1\x00\x00", false, "an Arrow (Feather) file: export Parquet or CSV"},
	{"FEA1", true, "a Feather file: export Parquet or CSV"},
	{"\xff\xff\xff\xff", false, "an Arrow stream: export Parquet or CSV"},
	{"SEQ\x06", false, "a Hadoop sequence file: export Parquet or CSV"},
	{"RCF\x01", false, "an RC file: export Parquet or CSV"},
	{"PGCOPY\n\xff\r\n\x00", false, "PostgreSQL's binary COPY: export text or CSV"},
	{"PGDMP", true, "a PostgreSQL dump: export text or CSV with COPY"},
	{"SQLite format 3\x00", false, "an SQLite database: export CSV"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", false, "an Excel file: save it as CSV"},
	{"%PDF-", false, "a PDF document"},
	{"PAR1", true, "a Parquet file: give its format, or call it .parquet"},
	{"PARE", true, "an encrypted Parquet file"},
}

// The variable "markup" matches the beginning of HTML and XML documents, for example the error page of a proxy or an
// object store.
var markup = regexp.MustCompile(`(?i)^(?:\xef\xbb\xbf)?\s*<(\?xml|!doctype +html|html|head|body|[a-z!])`)

// CheckKind looks at the first bytes of a file. If the file is of an unexpected kind, CheckKind returns an error with
// the name of this kind. The argument "magic" of CheckKind is the expected beginning of the file, or empty if the
// format has no fixed beginning.
func CheckKind(head []byte, magic string) error {
	for _, f := range foreign {
		if f.magic == magic || !bytes.HasPrefix(head, []byte(f.magic)) || f.binary && !isBinary(head) {
			continue
		}
		return fmt.Errorf("the file is %s", f.what)
	}
	if tag := markup.FindSubmatch(head); tag != nil {
		switch name := bytes.ToLower(tag[1]); {
		case bytes.Equal(name, []byte("?xml")):
			return fmt.Errorf("the file is an XML document, perhaps a saved error message: it begins with %q",
				Clip(head))
		case len(name) > 1:
			return fmt.Errorf("the file is an HTML page, perhaps a saved error message: it begins with %q",
				Clip(head))
		}
		return fmt.Errorf("the file is an XML or HTML document: it begins with %q", Clip(head))
	}
	return nil
}

// isBinary reports whether the first bytes of a file are binary data and not text.
func isBinary(head []byte) bool {
	head = head[:min(len(head), 512)]
	for len(head) > 0 {
		r, size := utf8.DecodeRune(head)
		if r == utf8.RuneError && size == 1 && len(head) >= utf8.UTFMax || r < ' ' && r != '\n' && r != '\r' &&
			r != '\t' {
			return true
		}
		head = head[size:]
	}
	return false
}
