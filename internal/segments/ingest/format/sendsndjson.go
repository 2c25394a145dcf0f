package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"capper/internal/ids"
)

// The struct objectRows parses an NDJSON file about sends (messages that another system sent). Each line of an NDJSON
// file is a JSON object.
type objectRows struct {
	*sendReader
	*object
	seen    map[string]bool   // names of members, at most mostNames
	found   [sendColumns]bool // columns that at least one object has
	lacking int64             // the first line without a namespace; 0: none
}

// mostNames is the maximum number of member names in an error about a missing column.
const mostNames = 50

func (r *sendReader) readNDJSON() (err error) {
	rows := &objectRows{sendReader: r, object: newObject(r.names[:]), seen: map[string]bool{}}
	blocks := NewBlocks(r.file, 1, Syntax{Whole: wholeLines, Nulls: true})
	block := make([]byte, 0, r.file.stored.bufferBytes())
	for last := false; !last; {
		var line int64
		if block, line, last, err = blocks.Next(block); err != nil {
			if errors.As(err, new(longRow)) {
				return fmt.Errorf("line %d: must have at most %d bytes", line, HeadBytes)
			}
			return fmt.Errorf("line %d: %w", line, err)
		}
		for row := range bytes.Lines(block) {
			if len(bytes.TrimSpace(row)) > 0 {
				fields, fault := rows.row(bytes.Trim(row, " \t\r\n"), line)
				if err := r.take(line, &fields, fault); err != nil {
					return err
				}
			}
			line++
		}
	}
	return rows.missing()
}

// The method "missing" returns an error if the namespace of some sends is unknown. If no JSON object of the file has a
// column that was requested by name, the method "missing" also returns an error, because the name may be misspelled.
func (r *objectRows) missing() error {
	if r.Namespace != nil && r.lacking > 0 && r.found[columnNamespace] {
		return fmt.Errorf("line %d lacks the field %s, which other lines have: the namespace of the send is unknown",
			r.lacking, r.names[columnNamespace])
	}
	for i, asked := range r.asked {
		if asked != "" && !r.found[i] && len(r.seen) > 0 {
			return &NoColumnError{fmt.Sprintf("column %q does not exist in any line: the columns are %q",
				asked, slices.Sorted(maps.Keys(r.seen)))}
		}
	}
	return nil
}

// The method "note" records that a JSON object of the file has a member with the given name.
func (r *objectRows) note(name string) {
	if len(r.seen) < mostNames {
		r.seen[name] = true
	}
	if i := slices.Index(r.names[:], name); i >= 0 {
		r.found[i] = true
	}
}

// The method "row" returns a send's fields from one line with a JSON object.
func (r *objectRows) row(line []byte, n int64) (fields record, err error) {
	if r.lacksColumn() {
		_ = eachMember(line, r.note) // the method read reports the error
	}
	if err := r.read(line); err != nil {
		why := eachMember(line, r.note)
		if repeated := repeatedName(""); errors.As(err, &repeated) {
			return fields, fmt.Errorf("field %s is given twice", string(repeated))
		}
		return fields, cmp.Or(why, err)
	}
	for i, value := range r.values {
		r.found[i] = r.found[i] || value != nil
		var fault error
		if fields[i], fault = textIn(value); fault != nil && err == nil {
			err = fmt.Errorf("%s %w", r.names[i], fault)
		}
	}
	if value := r.values[columnUser]; err == nil && r.parser != nil && len(value) > 0 && value[0] != '"' &&
		value[0] != 'n' && r.Scheme.Kind() != ids.Uint64 {
		err = fmt.Errorf("%s must be a JSON string, got %s", r.names[columnUser], Clip(value))
	}
	for i, name := range r.names[:columnAt+1] {
		if value := r.values[i]; err == nil && (value == nil || value[0] == 'n') {
			err = fmt.Errorf("%s is missing", name)
		}
	}
	if err == nil && fields[columnNamespace] == nil && r.lacking == 0 {
		r.lacking = n
	}
	return fields, err
}

// lacksColumn reports whether a requested column has occurred in no line so far.
func (r *objectRows) lacksColumn() bool {
	for i, asked := range r.asked {
		if asked != "" && !r.found[i] {
			return true
		}
	}
	return false
}

// textIn returns the text in a JSON value, which must be a string, a number or null. For the JSON value null, textIn
// returns an empty text; for a missing value, textIn returns nil. Like encoding/json, textIn replaces each byte that is
// not valid UTF-8 by U+FFFD.
func textIn(value []byte) ([]byte, error) {
	switch {
	case value == nil:
		return nil, nil
	case value[0] == 'n':
		return []byte{}, nil
	case value[0] == '-' || value[0] >= '0' && value[0] <= '9':
		return value, nil
	}
	text, ok := jsonString(value)
	if !ok {
		return nil, errors.New("must be a string or a number")
	}
	if !utf8.Valid(text) {
		text = []byte(string([]rune(string(text))))
	}
	return text, nil
}
