package ingest

import (
	"bytes"
	"fmt"
)

// wholeRecords is the length of the whole records at the start of block. Only
// a quoted field may hold a line break, so a block without quotes needs no scan.
func (s *layout) wholeRecords(block []byte) int {
	if bytes.IndexByte(block, '"') < 0 {
		return wholeLines(block)
	}
	end := 0
	for {
		next := recordEnd(block, end, s.delimiter)
		if next < 0 {
			return end
		}
		end = next
	}
}

// recordEnd is the index after the record that starts at i, -1 when it is not whole.
func recordEnd(b []byte, i int, delimiter byte) int {
	for {
		if i < len(b) && b[i] == '"' {
			if i = quoteEnd(b, i); i < 0 || i == len(b) {
				return -1
			}
		}
		for i < len(b) && b[i] != delimiter && b[i] != '\n' {
			i++
		}
		if i == len(b) {
			return -1
		}
		if b[i] == '\n' {
			return i + 1
		}
		i++
	}
}

// quoteEnd is the index after the quote that closes the one at i, -1 when there is none.
func quoteEnd(b []byte, i int) int {
	for i++; ; i += 2 {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		if i+1 >= len(b) || b[i+1] != '"' {
			return i + 1
		}
	}
}

// nextField returns the field that starts at i of a record, quotes included,
// and where the next one starts, beyond the record's end when there is none.
func nextField(record []byte, i int, delimiter byte) (field []byte, next int) {
	end := i
	if end < len(record) && record[end] == '"' {
		if end = quoteEnd(record, end); end < 0 {
			return record[i:], len(record) + 1
		}
	}
	n := bytes.IndexByte(record[end:], delimiter)
	if n < 0 {
		return record[i:], len(record) + 1
	}
	return record[i : end+n], end + n + 1
}

// unquote removes the quotes of a field; ok is false when they are not in order.
func unquote(field []byte) (value []byte, ok bool) {
	if bytes.IndexByte(field, '"') < 0 {
		return field, true
	}
	if len(field) < 2 || field[0] != '"' || quoteEnd(field, 0) != len(field) {
		return field, false
	}
	value = field[1 : len(field)-1]
	if bytes.IndexByte(value, '"') >= 0 {
		value = bytes.ReplaceAll(value, []byte(`""`), []byte(`"`))
	}
	return value, true
}

// parse parses a block of whole records.
func (s *layout) parse(w *worker, block []byte, line int64) {
	if bytes.IndexByte(block, '"') < 0 {
		s.parsePlain(w, block, line)
		return
	}
	for len(block) > 0 {
		end := recordEnd(block, 0, s.delimiter)
		if end < 0 {
			end = len(block)
		}
		s.parseRecord(w, trimBreak(block[:end]), line)
		line += int64(bytes.Count(block[:end], []byte{'\n'}))
		block = block[end:]
	}
}

// parsePlain parses a block without quotes in one pass over its bytes. Rows
// that are not plainly right go to parseRecord, which knows what to say.
func (s *layout) parsePlain(w *worker, block []byte, line int64) {
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
		if end == len(block) { // the last row, without a line break
			end = field + len(trimBreak(block[field:]))
			s.parseRecord(w, block[:end], line)
			return
		}
		if column+1 == s.columns && end > 0 {
			w.row(line, id, segment, segmentColumn >= 0)
		} else {
			s.parseRecord(w, trimBreak(block[:end]), line)
		}
		block = block[end+1:]
	}
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

func (s *layout) parseRecord(w *worker, record []byte, line int64) {
	var id, segment []byte
	columns, inOrder := 0, true
	for at := 0; at <= len(record); columns++ {
		var field []byte
		field, at = nextField(record, at, s.delimiter)
		value, ok := unquote(field)
		inOrder = inOrder && ok
		switch columns {
		case s.id:
			id = value
		case s.segment:
			segment = value
		}
	}
	switch {
	case len(record) == 0:
		w.reject(line, record, reasonEmpty)
	case !inOrder:
		w.reject(line, record, reasonQuote)
	case columns != s.columns:
		w.reject(line, record, fmt.Sprintf(reasonColumns, columns, s.columns))
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
