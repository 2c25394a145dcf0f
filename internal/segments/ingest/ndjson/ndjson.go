// Package ndjson parses one JSON object per line. The id is a JSON integer, or a
// string of digits, as exporters write 64-bit integers that JavaScript would round.
package ndjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"capper/internal/segments/ingest/rows"
)

// Syntax is that of NDJSON, of which the fields with these names are read; the
// segment's is empty where the rows are not those of a table.
func Syntax(id, segment string) rows.Syntax {
	f := &objectFields{id: id, segment: segment}
	return rows.Syntax{Whole: rows.WholeLines, Parse: f.parse, Complete: isObject}
}

// isObject reports whether a line is an object with its closing brace: no cut leaves one.
func isObject(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) > 0 && line[0] == '{' && json.Valid(line)
}

// objectFields names the fields that are read; segment is empty when the file is no table.
type objectFields struct{ id, segment string }

func (f *objectFields) parse(b *rows.Block, text []byte, line int64) {
	for ; len(text) > 0; line++ {
		end := bytes.IndexByte(text, '\n') + 1
		if end == 0 {
			end = len(text)
		}
		row := bytes.TrimSpace(text[:end])
		text = text[end:]
		if err := f.parseRow(b, row, line); err != nil {
			b.Reject(line, row, err.Error())
		}
	}
}

func (f *objectFields) parseRow(b *rows.Block, row []byte, line int64) error {
	if len(row) == 0 {
		return fmt.Errorf("empty line, want a JSON object")
	}
	if row[0] != '{' {
		return errNoObject
	}
	id, segment, ok := f.flatObject(row)
	if !ok {
		if !json.Valid(row) {
			return errNoObject
		}
		var err error
		if id, segment, err = f.members(row); err != nil {
			return err
		}
	}
	if f.segment == "" {
		b.Add(line, plainID(id), nil)
		return nil
	}
	name, ok := jsonString(segment)
	if !ok {
		return fmt.Errorf("field %q is not a string", f.segment)
	}
	b.Add(line, plainID(id), name)
	return nil
}

var errNoObject = errors.New("not a JSON object")

// members finds the wanted fields of a valid object, whatever else is in it.
func (f *objectFields) members(row []byte) (id, segment []byte, err error) {
	for at := skipSpace(row, 1); row[at] != '}'; {
		key, value, next := nextMember(row, at)
		at = next
		switch {
		case sameString(key, f.id):
			if id != nil {
				return nil, nil, fmt.Errorf("field %q is there twice", f.id)
			}
			id = value
		case f.segment != "" && sameString(key, f.segment):
			if segment != nil {
				return nil, nil, fmt.Errorf("field %q is there twice", f.segment)
			}
			segment = value
		}
	}
	if id == nil {
		return nil, nil, fmt.Errorf("no field %q", f.id)
	}
	return id, segment, nil
}

// plainID drops the quotes of an id that is a string without escapes.
func plainID(value []byte) []byte {
	if n := len(value); n >= 2 && value[0] == '"' {
		if digits := value[1 : n-1]; bytes.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }) < 0 {
			return digits
		}
	}
	return value
}

func jsonString(value []byte) ([]byte, bool) {
	if len(value) == 0 || value[0] != '"' {
		return nil, false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], true
	}
	var s string
	err := json.Unmarshal(value, &s)
	return []byte(s), err == nil
}

// sameString compares a JSON string, quotes included, with a Go string.
func sameString(raw []byte, s string) bool {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:len(raw)-1]) == s
	}
	decoded, ok := jsonString(raw)
	return ok && string(decoded) == s
}

// nextMember splits the member of a valid object that starts at i: its key with
// quotes, its value, and where the next member or the closing brace is.
func nextMember(row []byte, i int) (key, value []byte, next int) {
	end := stringEnd(row, i)
	key = row[i:end]
	i = skipSpace(row, skipSpace(row, end)+1) // the colon
	end = valueEnd(row, i)
	value = bytes.TrimRight(row[i:end], " \t\r")
	if row[end] == ',' {
		end = skipSpace(row, end+1)
	}
	return key, value, end
}

func skipSpace(row []byte, i int) int {
	for row[i] == ' ' || row[i] == '\t' || row[i] == '\r' {
		i++
	}
	return i
}

// stringEnd is the index after the string that starts at i.
func stringEnd(row []byte, i int) int {
	for i++; row[i] != '"'; i++ {
		if row[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd is the index of the comma or brace that follows the value at i.
func valueEnd(row []byte, i int) int {
	for depth := 0; i < math.MaxInt; i++ {
		switch row[i] {
		case '"':
			i = stringEnd(row, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}
