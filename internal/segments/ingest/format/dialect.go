package format

import (
	"bytes"
)

// A dialect contains the special characters of a text, CSV or TSV file. If the file has no special character of a kind,
// the field is 0. A NUL byte in a file is always ordinary data.
type dialect struct {
	delimiter byte
	quote     byte // encloses a field that begins with a quote; two quotes inside the field stand for one
	escape    byte // makes the next byte ordinary, even a line break
}

// wholeRows returns the length of the complete rows at the start of the block, in bytes. A quoted or escaped line break
// does not end a row.
func (d *dialect) wholeRows(block []byte) int {
	if d.quote == 0 || bytes.IndexByte(block, d.quote) < 0 {
		return d.wholeUnquoted(block)
	}
	end := 0
	for {
		next := d.rowEnd(block, end)
		if next < 0 {
			return end
		}
		end = next
	}
}

// wholeUnquoted returns the length of the complete rows at the start of a block without quotes, in bytes. wholeUnquoted
// searches backwards for a line break that is not escaped.
func (d *dialect) wholeUnquoted(block []byte) int {
	for {
		end := wholeLines(block)
		if end == 0 || !d.endsEscaped(block[:end-1]) {
			return end
		}
		block = block[:end-1]
	}
}

// endsEscaped reports whether the text ends with an odd number of escape characters. After an odd number of escape
// characters, the next byte is escaped.
func (d *dialect) endsEscaped(text []byte) bool {
	if d.escape == 0 {
		return false
	}
	n := len(text)
	for n > 0 && text[n-1] == d.escape {
		n--
	}
	return (len(text)-n)%2 == 1
}

// rowEnd returns the end of the row that starts at the index i: the index after the row's line break. If the row is
// incomplete, rowEnd returns -1.
func (d *dialect) rowEnd(b []byte, i int) int {
	for {
		if d.quote != 0 && i < len(b) && b[i] == d.quote {
			if i = d.quoteEnd(b, i); i < 0 || i == len(b) {
				return -1
			}
		}
		if i = d.fieldEnd(b, i); i == len(b) {
			return -1
		}
		if b[i] == '\n' {
			return i + 1
		}
		i++
	}
}

// fieldEnd returns the end of the unquoted field at the index i: the index of the delimiter or line break after the
// field. If no delimiter or line break follows, fieldEnd returns len(b).
func (d *dialect) fieldEnd(b []byte, i int) int {
	delimiter, escape := d.delimiter, d.escape
	for ; i < len(b); i++ {
		c := b[i]
		if c == delimiter || c == '\n' {
			return i
		}
		if c == escape && c != 0 {
			i++
		}
	}
	return len(b)
}

// quoteEnd returns the index after the closing quote of the field whose opening quote is at the index i. If the closing
// quote is missing, quoteEnd returns -1.
func (d *dialect) quoteEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		if d.escape == 0 {
			n := bytes.IndexByte(b[i:], d.quote)
			if n < 0 {
				return -1
			}
			i += n
		}
		switch {
		case b[i] == d.escape && d.escape != 0:
			i++
		case b[i] != d.quote:
		case i+1 < len(b) && b[i+1] == d.quote:
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// The method "row" parses the row at the beginning of b. The row at the beginning of b must not be empty. For each
// column index in the slice places, the method "row" stores the field of this column in the slice values. The result
// "inOrder" of the method "row" is true if all quotes are valid. The result "row" of the method "row" is the row
// without its line break. The result "size" of the method "row" is the length of the row in bytes, with its line break.
func (d *dialect) row(b []byte, places []int, values [][]byte) (columns int, inOrder bool, size int, row []byte) {
	inOrder = true
	for at, end := 0, 0; ; at = end + 1 {
		var value []byte
		var ok bool
		value, ok, end = d.field(b, at)
		inOrder = inOrder && ok
		for i, place := range places {
			if place == columns {
				values[i] = value
			}
		}
		columns++
		if end == len(b) || b[end] == '\n' {
			return columns, inOrder, min(end+1, len(b)), b[:beforeReturn(b, 0, end)]
		}
	}
}

// allFields returns all fields of the row at the beginning of b. The result "inOrder" of allFields is true if all
// quotes are valid.
func (d *dialect) allFields(b []byte) (fields [][]byte, inOrder bool) {
	columns, inOrder, _, _ := d.row(b, nil, nil)
	places := make([]int, columns)
	for i := range places {
		places[i] = i
	}
	fields = make([][]byte, columns)
	d.row(b, places, fields)
	return fields, inOrder
}

// The method "field" parses the field at the index i, and returns the value without quotes. The result "inOrder" of the
// method "field" is true if the quotes are valid. The result "end" of the method "field" is the index of the delimiter
// or line break after the field; if neither follows, "end" is len(b). A quoted field without a closing quote extends to
// the end of b.
func (d *dialect) field(b []byte, i int) (value []byte, inOrder bool, end int) {
	if d.quote == 0 || i == len(b) || b[i] != d.quote {
		end = d.fieldEnd(b, i)
		value = b[i:beforeReturn(b, i, end)]
		return value, d.allEscaped(value), end
	}
	closed := d.quoteEnd(b, i)
	if closed < 0 {
		return b[i:], false, len(b)
	}
	end = d.fieldEnd(b, closed)
	if beforeReturn(b, closed, end) != closed {
		return b[i:end], false, end
	}
	value = b[i+1 : closed-1]
	if bytes.IndexByte(value, d.quote) >= 0 {
		value = bytes.ReplaceAll(value, []byte{d.quote, d.quote}, []byte{d.quote})
	}
	return value, true, end
}

// beforeReturn returns end-1 if the byte before the index "end" is a carriage return that belongs to the line break,
// and otherwise end.
func beforeReturn(b []byte, i, end int) int {
	if end > i && b[end-1] == '\r' && (end == len(b) || b[end] == '\n') {
		return end - 1
	}
	return end
}

// allEscaped reports whether all quote characters in an unquoted field are escaped.
func (d *dialect) allEscaped(field []byte) bool {
	if d.quote == 0 || bytes.IndexByte(field, d.quote) < 0 {
		return true
	}
	for i := 0; i < len(field); i++ {
		switch c := field[i]; {
		case c == d.quote:
			return false
		case c == d.escape && c != 0:
			i++
		}
	}
	return true
}

// isNull reports whether a field is \N. In files with an escape character, \N means null.
func (d *dialect) isNull(field []byte) bool {
	return d.escape != 0 && len(field) == 2 && field[0] == d.escape && field[1] == 'N'
}
