package format

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// A delimited describes a text, CSV or TSV file after OpenDelimited has examined the first row.
type delimited struct {
	// Column is the name of the id column, or its number if the file has no header. For a text file without a header,
	// Column is empty.
	Column string
	// Names is the name or number of the column with the names of segments or sets. If the file is not a table, Names
	// is empty.
	Names string
	// If the first row names the columns, Header is the beginning of this row; otherwise, Header is empty. HeaderBytes
	// and HeaderLines are the size of the header.
	Header      string
	HeaderBytes int
	HeaderLines int64
	// Multiline describes a header that spans several lines.
	Multiline Multiline

	text   bool
	layout *layout
}

// OpenDelimited examines the first row of a text, CSV or TSV file and chooses the columns to read. The argument "head"
// of OpenDelimited is the beginning of the file, and must contain the whole first row. The first row of the file must
// not be empty.
func OpenDelimited(head []byte, o DelimitedOptions) (*delimited, error) {
	d, err := o.dialect()
	if err != nil {
		return nil, err
	}
	first, size, fault := d.firstRow(head, o.Kind == Text)
	shape, err := o.layout(first, d)
	if err != nil {
		return nil, err
	}
	f := &delimited{text: o.Kind == Text, layout: shape}
	if !f.text {
		f.Column = strconv.Itoa(shape.id + 1)
	}
	if o.Table {
		f.Names = strconv.Itoa(shape.segment + 1)
	}
	if shape.header {
		f.Column = first[shape.id]
		if o.Table {
			f.Names = first[shape.segment]
		}
		return f, f.takeHeader(head[:size], fault)
	}
	if shape.swallowsFirst(bytes.TrimRight(head[:size], "\r\n")) {
		return nil, fmt.Errorf("line 1: %s", reasonSwallowed)
	}
	return f, nil
}

// takeHeader records the header of a CSV, TSV or text file. If quotes in the header are faulty, takeHeader returns an
// error. takeHeader also returns an error if a quoted field of the header contains rows, because these rows would be
// lost.
func (f *delimited) takeHeader(head []byte, fault error) error {
	f.HeaderBytes, f.HeaderLines = len(head), int64(bytes.Count(head, []byte{'\n'}))
	row := bytes.TrimRight(head, "\r\n")
	f.Header = Clip(row)
	if fault != nil {
		return fault
	}
	lines := int64(bytes.Count(row, []byte{'\n'})) + 1
	if lines == 1 {
		return nil
	}
	if f.layout.headerSwallows(row) {
		return fmt.Errorf("the header: %s", reasonSwallowed)
	}
	f.Multiline.Note(1, lines)
	return nil
}

// The method Syntax returns the functions that cut the rows after the header into blocks and parse the blocks.
func (f *delimited) Syntax() Syntax {
	if f.text {
		return Syntax{Whole: wholeLines, Parse: parseText}
	}
	return Syntax{
		Whole: f.layout.wholeRows, Parse: f.layout.parse, Nulls: f.layout.columns == 1, Escaped: f.layout.endsEscaped,
	}
}

// firstRow splits the first row of a file into fields without quotes. If the argument "text" is true, the file has one
// field per line. The caller of firstRow ignores the result "fault" unless the row is a header, because the parser
// later checks a row of data.
func (d *dialect) firstRow(head []byte, text bool) (fields []string, size int, fault error) {
	end := bytes.IndexByte(head, '\n') + 1
	if !text {
		end = d.rowEnd(head, 0)
	}
	if end <= 0 {
		end = len(head)
	}
	row := bytes.TrimRight(head[:end], "\r\n")
	if text {
		return []string{strings.TrimSpace(string(row))}, end, nil
	}
	values, inOrder := d.allFields(row)
	for _, value := range values {
		fields = append(fields, strings.TrimSpace(string(value)))
	}
	if !inOrder {
		fault = fmt.Errorf("the header: %s", reasonQuote)
	}
	return fields, end, fault
}
