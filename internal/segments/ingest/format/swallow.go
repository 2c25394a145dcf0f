package format

import (
	"bytes"
)

// maxLikeRows is how many lines of a row may read as rows of their own: an
// address has one ("12, Rue X"), a note a few, a stray quote encloses many.
const maxLikeRows = 3

// swallows reports whether more lines of a row read as rows of their own than
// an address or a note has: then a quote is missing or one too many, and what it
// encloses are other people's rows.
func (l *layout) swallows(row []byte) bool {
	return l.likeRows(l.enclosed(row), l.columns) > maxLikeRows
}

// headerSwallows is the same question for the header, of which every line is a
// column's name: most of them read as rows.
func (l *layout) headerSwallows(row []byte) bool {
	lines := l.enclosed(row)
	return 2*l.likeRows(lines, l.columns) > len(lines)
}

// swallowsFirst is the same question for the first row of a file with
// escapes. Later rows are told by their columns, but these it decides itself.
func (l *layout) swallowsFirst(row []byte) bool {
	lines := bytes.Split(row, []byte{'\n'})
	columns := bytes.Count(lines[0], []byte{l.delimiter}) + 1
	return l.escape != 0 && 2*l.likeRows(lines[1:], columns) > len(lines)-1
}

// enclosed are the lines of a row behind its first, as far as one might be a
// row that does not belong to it.
func (l *layout) enclosed(row []byte) [][]byte {
	lines := bytes.Split(row, []byte{'\n'})[1:]
	if _, _, end := l.field(row, 0); bytes.IndexByte(row[:end], '\n') >= 0 {
		lines = lines[:len(lines)-1] // it holds all other fields of the row, as it should
	}
	return lines
}

// likeRows counts the lines that have a row's columns and a user id where it belongs.
func (l *layout) likeRows(lines [][]byte, columns int) (count int) {
	for _, line := range lines {
		fields := bytes.Split(trimBreak(line), []byte{l.delimiter})
		if len(fields) != columns || l.id >= columns {
			continue
		}
		if _, ok := parseID(bytes.Trim(fields[l.id], "\"")); ok { // whatever its quotes
			count++
		}
	}
	return count
}
