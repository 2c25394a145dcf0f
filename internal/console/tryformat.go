package console

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"unicode/utf16"
)

// mostUnpacked is the maximum size in bytes of an uploaded file after decompression.
const mostUnpacked = 64 << 20

// The variable "named" lists file formats that the page recognises but does not read. Each entry of "named" has the
// first bytes of a file format, and the remedy that the page shows to the visitor.
var named = []struct{ begin, remedy string }{
	{"PK\x03\x04", "The file is an Excel workbook or a ZIP archive. Save the sheet as CSV, or unpack the archive, " +
		"and choose that file."},
	{"\xd0\xcf\x11\xe0", "The file is an old Excel workbook (.xls). Save the sheet as CSV, and choose that file."},
	{"\x28\xb5\x2f\xfd", "The file is packed with zstd. Unpack it, or pack it with gzip."},
	{"PAR1", "The file is a Parquet file. Save the column of ids as CSV, or publish it as a set and try the set."},
	{"%PDF", "The file is a PDF. Save the list as CSV, and choose that file."},
}

// The function "unpacked" returns the text of an uploaded file as UTF-8, after decompressing gzip and decoding UTF-16
// (from Excel). If the page cannot read the format of the file, the result "fault" names the format.
func unpacked(from io.Reader) (text *bufio.Reader, fault string) {
	text = bufio.NewReader(from)
	if begin, _ := text.Peek(2); string(begin) == "\x1f\x8b" {
		unzipped, err := gzip.NewReader(text)
		if err != nil {
			return nil, "The file begins like gzip, but cannot be unpacked."
		}
		all, err := io.ReadAll(io.LimitReader(unzipped, mostUnpacked+1))
		switch {
		case err != nil:
			return nil, "The gzip file is damaged or cut: it cannot be unpacked to its end."
		case len(all) > mostUnpacked:
			return nil, "The file has more than 64 MB when it is unpacked. Use a part of the list, or publish it as " +
				"a set and try the set."
		}
		text = bufio.NewReader(bytes.NewReader(all))
	}
	begin, _ := text.Peek(4)
	for _, format := range named {
		if strings.HasPrefix(string(begin), format.begin) {
			return nil, format.remedy
		}
	}
	if order := utf16Order(begin); order != nil {
		all, err := io.ReadAll(text)
		if err != nil {
			return nil, "The file could not be read to its end."
		}
		return bufio.NewReader(strings.NewReader(fromUTF16(all, order))), ""
	}
	return text, ""
}

// utf16Order returns the byte order of a text in UTF-16. If the text is not in UTF-16, utf16Order returns nil.
func utf16Order(begin []byte) binary.ByteOrder {
	if len(begin) < 2 {
		return nil
	}
	switch mark := [2]byte(begin); {
	case mark == [2]byte{0xff, 0xfe}, mark[0] != 0 && mark[1] == 0:
		return binary.LittleEndian
	case mark == [2]byte{0xfe, 0xff}, mark[0] == 0 && mark[1] != 0:
		return binary.BigEndian
	}
	return nil
}

func fromUTF16(all []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(all)/2)
	for i := range units {
		units[i] = order.Uint16(all[2*i:])
	}
	return string(utf16.Decode(units))
}

// The function separator returns the character that separates the columns of an uploaded file. The function separator
// skips a byte order mark, and the line "sep=" in which Excel names the separator.
func separator(lines *bufio.Reader) rune {
	if mark, _ := lines.Peek(3); string(mark) == "\ufeff" {
		_, _ = lines.Discard(len(mark)) // Discard cannot fail after Peek
	}
	start, err := lines.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return ','
	}
	first, _, more := strings.Cut(string(start), "\n")
	first = strings.TrimSuffix(first, "\r")
	if name, said := strings.CutPrefix(first, "sep="); said && more && len(name) == 1 {
		_, _ = lines.ReadString('\n') // cannot fail after Peek
		return rune(name[0])
	}
	switch {
	case strings.Contains(first, ","):
		return ','
	case strings.Contains(first, "\t"):
		return '\t'
	case namesColumn(strings.Split(first, ";")):
		return ';'
	}
	return ','
}

// namesColumn reports whether the header of a file has several columns, one of which has a name for user ids.
func namesColumn(header []string) bool {
	if len(header) < 2 {
		return false
	}
	for i := range header {
		header[i] = strings.Trim(header[i], `" `)
	}
	_, found, _ := columnOf(header, 1)
	return found
}
