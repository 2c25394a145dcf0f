package format

import (
	"bytes"
)

// maxLikeRows is the number of lines of one row that may look like separate rows. If more lines look like separate
// rows, the row is bad. A field with an address may have one line that looks like a row ("12, Rue X"), and a note may
// have a few lines that look like rows. If a quote is missing or superfluous, a field can enclose many lines that look
// like rows.
const maxLikeRows = 3

// The method "swallows" reports whether more than maxLikeRows lines of a row look like separate rows. In such a bad
// row, a quote is missing or superfluous, so that a field encloses other rows.
func (l *layout) swallows(row []byte) bool {
	return l.likeRows(l.enclosed(row), l.columns) > maxLikeRows
}

// headerSwallows reports whether a column name in the header of a file encloses rows, because a quote is missing. Every
// line of a valid header is part of a column's name. If most lines of the header look like rows, headerSwallows
// therefore returns true.
func (l *layout) headerSwallows(row []byte) bool {
	lines := l.enclosed(row)
	return 2*l.likeRows(lines, l.columns) > len(lines)
}

// swallowsFirst reports whether the first row of a file with escapes encloses other rows. The parser checks later rows
// by their number of columns, but the first row determines this number, so it needs another check.
func (l *layout) swallowsFirst(row []byte) bool {
	lines := bytes.Split(row, []byte{'\n'})
	columns := bytes.Count(lines[0], []byte{l.delimiter}) + 1
	return l.escape != 0 && 2*l.likeRows(lines[1:], columns) > len(lines)-1
}

// The method "enclosed" returns the lines of a row that might be separate rows. The result never includes the first
// line of the row.
func (l *layout) enclosed(row []byte) [][]byte {
	lines := bytes.Split(row, []byte{'\n'})[1:]
	if _, _, end := l.field(row, 0); bytes.IndexByte(row[:end], '\n') >= 0 {
		lines = lines[:len(lines)-1] // the last line has the row's remaining fields
	}
	return lines
}

// likeRows counts the lines that look like rows: lines with the given number of columns and a user id in the id column.
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
