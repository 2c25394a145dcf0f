package format

import (
	"bytes"
)

// maxLikeRows is the number of lines of one row that may look like separate rows; with more such lines, the row counts
// as bad. A field with an address may have one line that looks like a row ("12, Rue X"), and a note may have a few such
// lines. If a quote is missing or superfluous, a field can enclose many lines that look like rows.
const maxLikeRows = 3

// swallows reports whether more than maxLikeRows lines of a row look like separate rows. If a row swallows
// other rows, a quote is missing or superfluous, so that a field encloses these rows.
func (l *layout) swallows(row []byte) bool {
	return l.likeRows(l.enclosed(row), l.columns) > maxLikeRows
}

// headerSwallows reports whether a missing quote in the header of a file makes a column name enclose rows. Every line
// of a valid header is part of a column's name, so headerSwallows returns true if most lines of the header look like
// rows.
func (l *layout) headerSwallows(row []byte) bool {
	lines := l.enclosed(row)
	return 2*l.likeRows(lines, l.columns) > len(lines)
}

// swallowsFirst reports whether the first row of a file with escapes encloses other rows. The parser checks later rows
// by their number of columns, but it knows this number only from the first row.
func (l *layout) swallowsFirst(row []byte) bool {
	lines := bytes.Split(row, []byte{'\n'})
	columns := bytes.Count(lines[0], []byte{l.delimiter}) + 1
	return l.escape != 0 && 2*l.likeRows(lines[1:], columns) > len(lines)-1
}

// enclosed returns the lines of a row, except the first, that might be separate rows.
func (l *layout) enclosed(row []byte) [][]byte {
	lines := bytes.Split(row, []byte{'\n'})[1:]
	if _, _, end := l.field(row, 0); bytes.IndexByte(row[:end], '\n') >= 0 {
		lines = lines[:len(lines)-1] // the last line holds the row's remaining fields
	}
	return lines
}

// likeRows counts how many lines look like rows: they have the given number of columns and a user id in the id column.
func (l *layout) likeRows(lines [][]byte, columns int) (count int) {
	for _, line := range lines {
		fields := bytes.Split(trimBreak(line), []byte{l.delimiter})
		if len(fields) != columns || l.id >= columns {
			continue
		}
		if l.isID(bytes.Trim(fields[l.id], "\"")) { // with or without quotes
			count++
		}
	}
	return count
}
