package ingest

import (
	"bytes"
	"fmt"
)

// parse parses a block of whole records. Lines without quotes and escapes, which
// are nearly all of most files, take the short way.
func (s *layout) parse(w *worker, block []byte, line int64) {
	quotes, escapes := marks{char: s.quote}, marks{char: s.escape}
	for at := 0; at < len(block); {
		special := min(quotes.from(block, at), escapes.from(block, at))
		if plain := at + wholeLines(block[at:special]); special == len(block) || plain > at {
			if special == len(block) {
				plain = special
			}
			line = s.parsePlain(w, block[at:plain], line)
			at = plain
			continue
		}
		size, lines := s.parseRecord(w, block[at:], line)
		at, line = at+size, line+lines
	}
}

// marks finds the places of a byte in a block, going forward.
type marks struct {
	char byte // 0: none
	at   int  // the last place that was found
	seen bool
}

// from is the first place at or after i, the block's length when there is none.
func (m *marks) from(block []byte, i int) int {
	if m.char == 0 {
		return len(block)
	}
	if !m.seen || m.at < i {
		m.seen = true
		if n := bytes.IndexByte(block[i:], m.char); n >= 0 {
			m.at = i + n
		} else {
			m.at = len(block)
		}
	}
	return m.at
}

// parsePlain parses a block without quotes and escapes in one pass over its
// bytes, and returns the line after it. Rows that are not plainly right go to
// parseRecord, which knows what to say.
func (s *layout) parsePlain(w *worker, block []byte, line int64) int64 {
	delimiter, idColumn, segmentColumn := s.delimiter, s.id, s.segment
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
		if end < len(block) && column+1 == s.columns && len(id) > 0 && id[0] != '"' {
			w.row(line, id, segment, segmentColumn >= 0)
			block = block[end+1:]
			continue
		}
		size, _ := s.parseRecord(w, block, line)
		block = block[size:]
	}
	return line
}

func trimBreak(record []byte) []byte {
	if n := len(record); n > 0 && record[n-1] == '\n' {
		record = record[:n-1]
	}
	if n := len(record); n > 0 && record[n-1] == '\r' {
		record = record[:n-1]
	}
	return record
}

// parseRecord takes the record apart with which b begins, and returns its size
// in bytes and in lines.
func (s *layout) parseRecord(w *worker, b []byte, line int64) (size int, lines int64) {
	var id, segment []byte
	columns, inOrder := 0, true
	for at, end := 0, 0; ; at = end + 1 {
		var value []byte
		var ok bool
		value, ok, end = s.field(b, at)
		inOrder = inOrder && ok
		switch columns {
		case s.id:
			id = value
		case s.segment:
			segment = value
		}
		columns++
		if size = end; end == len(b) || b[end] == '\n' {
			break
		}
	}
	record := b[:beforeReturn(b, 0, size)]
	if size < len(b) {
		size++ // the line break
	}
	lines = int64(bytes.Count(record, []byte{'\n'})) + 1
	if lines == 1 {
		s.judge(w, record, line, columns, inOrder, id, segment)
		return size, lines
	}
	w.multiline.note(line, lines)
	w.lines = lines
	if inOrder && columns == s.columns && s.quote != 0 && s.swallows(record) {
		w.reject(line, record, reasonSwallowed)
	} else {
		s.judge(w, record, line, columns, inOrder, id, segment)
	}
	w.lines = 1
	return size, lines
}

func (s *layout) judge(w *worker, record []byte, line int64, columns int, inOrder bool, id, segment []byte) {
	switch {
	case len(record) == 0:
		w.reject(line, record, reasonEmpty)
	case !inOrder:
		w.reject(line, record, reasonQuote)
	case columns != s.columns:
		w.reject(line, record, fmt.Sprintf(reasonColumns, columns, s.columns))
	default:
		s.row(w, line, id, segment)
	}
}

// maxLikeRows is how many lines of a record may read as rows of their own: an
// address has one ("12, Rue X"), a note a few, a stray quote encloses many.
const maxLikeRows = 3

// swallows reports whether more lines of a record read as rows of their own than
// an address or a note has: then a quote is missing or one too many, and what it
// encloses are other people's rows.
func (s *layout) swallows(record []byte) bool {
	return s.likeRows(s.enclosed(record), s.columns) > maxLikeRows
}

// headerSwallows is the same question for the header, of which every line is a
// column's name: most of them read as rows.
func (s *layout) headerSwallows(record []byte) bool {
	lines := s.enclosed(record)
	return 2*s.likeRows(lines, s.columns) > len(lines)
}

// swallowsFirst is the same question for the first record of a file with
// escapes. Later records are told by their columns, but these it decides itself.
func (s *layout) swallowsFirst(record []byte) bool {
	lines := bytes.Split(record, []byte{'\n'})
	columns := bytes.Count(lines[0], []byte{s.delimiter}) + 1
	return s.escape != 0 && 2*s.likeRows(lines[1:], columns) > len(lines)-1
}

// enclosed are the lines of a record behind its first, as far as one might be a
// row that does not belong to it.
func (s *layout) enclosed(record []byte) [][]byte {
	lines := bytes.Split(record, []byte{'\n'})[1:]
	if _, _, end := s.field(record, 0); bytes.IndexByte(record[:end], '\n') >= 0 {
		lines = lines[:len(lines)-1] // it holds all other fields of the record, as it should
	}
	return lines
}

// likeRows counts the lines that have a row's columns and a user id where it belongs.
func (s *layout) likeRows(lines [][]byte, columns int) (rows int) {
	for _, line := range lines {
		fields := bytes.Split(trimBreak(line), []byte{s.delimiter})
		if len(fields) != columns || s.id >= columns {
			continue
		}
		if _, ok := parseID(bytes.Trim(fields[s.id], "\"")); ok { // whatever its quotes
			rows++
		}
	}
	return rows
}

// row takes one row's fields. Escapes are not resolved: no id and no segment has any.
func (s *layout) row(w *worker, line int64, id, segment []byte) {
	switch {
	case s.isNull(id):
		w.reject(line, id, reasonEmpty)
	case s.segment >= 0 && s.isNull(segment):
		w.reject(line, segment, reasonNoSegment)
	case s.quote == 0 && len(id) > 0 && id[0] == '"':
		w.reject(line, id, reasonQuoted)
	default:
		w.row(line, id, segment, s.segment >= 0)
	}
}

// row takes one row's fields.
func (w *worker) row(line int64, id, segment []byte, table bool) {
	v, ok := parseID(id)
	if !ok {
		w.reject(line, id, whyNotID(id))
		return
	}
	if table {
		if n := len(segment); n > 0 && (segment[0] <= ' ' || segment[n-1] <= ' ') {
			segment = bytes.TrimSpace(segment)
		}
		code, err := w.sink.code(segment)
		if err != nil {
			w.reject(line, segment, err.Error())
			return
		}
		w.codes = append(w.codes, code)
	}
	w.ids = append(w.ids, v)
}
