package format

import (
	"bytes"
	"fmt"
)

// The constants reasonColumns to reasonSwallowed are reasons for which rows of text, CSV and TSV files are bad.
const (
	reasonColumns   = "row has %d columns, but the first row has %d"
	reasonQuote     = "a quote is neither at the beginning nor at the end of a field"
	reasonQuoted    = "not a user id: the file is read without quotes (the option quote changes this)"
	reasonSwallowed = "a field covers several lines that look like separate rows: a quote or an escape is missing, " +
		"or there is one too many"
)

// The method "parse" parses a block of complete rows of a CSV or TSV file. A fast path parses lines without quotes and
// escapes, because most lines have none.
func (l *layout) parse(into *Block, block []byte, line int64) {
	quotes, escapes := finder{char: l.quote}, finder{char: l.escape}
	for at := 0; at < len(block); {
		special := min(quotes.from(block, at), escapes.from(block, at))
		if plain := at + wholeLines(block[at:special]); special == len(block) || plain > at {
			if special == len(block) {
				plain = special
			}
			line = l.parsePlain(into, block[at:plain], line)
			at = plain
			continue
		}
		size, lines := l.parseRow(into, block[at:], line)
		at, line = at+size, line+lines
	}
}

// A finder searches a block of text from left to right for the positions of one character, such as the quote.
type finder struct {
	char byte // 0 finds nothing
	at   int  // the last position found
	seen bool
}

// The method "from" returns the first position of the character at or after the index i. If the character does not
// follow, the method "from" returns the length of the block.
func (f *finder) from(block []byte, i int) int {
	if f.char == 0 {
		return len(block)
	}
	if !f.seen || f.at < i {
		f.seen = true
		if n := bytes.IndexByte(block[i:], f.char); n >= 0 {
			f.at = i + n
		} else {
			f.at = len(block)
		}
	}
	return f.at
}

// parsePlain parses lines without quotes and escapes in one pass, and returns the number of the next line. parsePlain
// passes unusual rows to parseRow, which finds the reason if a row is bad.
func (l *layout) parsePlain(into *Block, block []byte, line int64) int64 {
	delimiter, idColumn, segmentColumn := l.delimiter, l.id, l.segment
	for ; len(block) > 0; line++ {
		var id, segment []byte
		column, field, end := 0, 0, len(block)
		for i, c := range block {
			if c != delimiter && c != '\n' {
				continue
			}
			if column == idColumn {
				id = block[field:i]
			} else if column == segmentColumn {
				segment = block[field:i]
			}
			if c == '\n' {
				end = i
				break
			}
			column, field = column+1, i+1
		}
		if end < len(block) && column+1 == l.columns && len(id) > 0 && id[0] != '"' {
			into.Add(line, id, segment)
			block = block[end+1:]
			continue
		}
		size, _ := l.parseRow(into, block, line)
		block = block[size:]
	}
	return line
}

func trimBreak(row []byte) []byte {
	if n := len(row); n > 0 && row[n-1] == '\n' {
		row = row[:n-1]
	}
	if n := len(row); n > 0 && row[n-1] == '\r' {
		row = row[:n-1]
	}
	return row
}

// parseRow parses the row at the beginning of b. parseRow returns the length of the row in bytes, and its number of
// lines.
func (l *layout) parseRow(into *Block, b []byte, line int64) (size int, lines int64) {
	// The following loop is the loop of dialect.row for two columns, and saves a tenth of the time for rows with
	// quotes.
	var id, segment []byte
	columns, inOrder := 0, true
	for at, end := 0, 0; ; at = end + 1 {
		var value []byte
		var ok bool
		value, ok, end = l.field(b, at)
		inOrder = inOrder && ok
		switch columns {
		case l.id:
			id = value
		case l.segment:
			segment = value
		}
		columns++
		if size = end; end == len(b) || b[end] == '\n' {
			break
		}
	}
	row := b[:beforeReturn(b, 0, size)]
	size = min(size+1, len(b)) // includes the line break
	lines = int64(bytes.Count(row, []byte{'\n'})) + 1
	if lines > 1 {
		into.Multiline.Note(line, lines)
		into.Lines = lines
	}
	switch {
	case len(row) == 0:
		into.Reject(line, row, reasonEmpty)
	case !inOrder:
		into.Reject(line, row, reasonQuote)
	case columns != l.columns:
		into.Reject(line, row, fmt.Sprintf(reasonColumns, columns, l.columns))
	case lines > 1 && l.quote != 0 && l.swallows(row):
		into.Reject(line, row, reasonSwallowed)
	case into.parser != nil:
		plain, ok := l.unescaped(id)
		if !ok && !l.isNull(id) {
			into.Reject(line, id, reasonEscape)
			break
		}
		if !ok {
			plain = id
		}
		l.takeRow(into, line, plain, segment)
	default:
		l.takeRow(into, line, id, segment)
	}
	into.Lines = 1
	return size, lines
}

// takeRow adds the id and the segment name of one row to the block. takeRow leaves escape characters in dense ids and
// names, because no valid dense id or name contains an escape character.
func (l *layout) takeRow(into *Block, line int64, id, segment []byte) {
	switch {
	case l.isNull(id):
		into.Reject(line, id, reasonEmpty)
	case l.segment >= 0 && l.isNull(segment):
		into.Reject(line, segment, reasonNoSegment)
	case l.quote == 0 && len(id) > 0 && id[0] == '"':
		into.Reject(line, id, reasonQuoted)
	default:
		into.Add(line, id, segment)
	}
}

// parseText parses a block of a text file with one id per line.
func parseText(into *Block, block []byte, line int64) {
	if into.parser != nil {
		parseLines(into, block, line)
		return
	}
	ids := into.IDs
	for i := 0; i < len(block); line++ {
		start, v := i, uint64(0)
		for i < len(block) {
			c := block[i] - '0'
			if c > 9 {
				break
			}
			v = v*10 + uint64(c)
			i++
		}
		if digits := i - start; digits > 0 && digits <= 10 && v <= maxID && (i == len(block) || block[i] == '\n') {
			ids = append(ids, uint32(v))
			i++
			continue
		}
		field := block[start:]
		if end := bytes.IndexByte(field, '\n'); end >= 0 {
			field = field[:end]
		}
		i = start + len(field) + 1
		if id, ok := parseID(field); ok {
			ids = append(ids, id)
		} else {
			into.Reject(line, bytes.TrimRight(field, "\r"), whyNotID(field))
		}
	}
	into.IDs = ids
}
