package format

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// objectRows parses lines of JSON objects into sends.
type objectRows struct {
	options *SendOptions
	names   [sendColumns]string
	seen    map[string]bool   // names of members, at most mostNames
	found   [sendColumns]bool // the columns that at least one object has
	lacking int64             // the first line without a namespace; 0: none
}

// mostNames is the maximum number of member names in an error about a missing column.
const mostNames = 50

func (o *SendOptions) readNDJSON(file io.Reader, yield func(SendRow, *RowError, int64) error) error {
	all := &objectRows{options: o, names: o.names(), seen: map[string]bool{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	n := int64(0)
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var bad *RowError
		row, err := all.row(lines.Bytes(), n)
		if err != nil {
			bad = &RowError{n, err}
		}
		if err := yield(row, bad, n); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: must have at most %d bytes", n+1, maxLine)
	}
	if lines.Err() != nil {
		return fmt.Errorf("line %d: %w", n+1, lines.Err())
	}
	if o.Namespace != nil && all.lacking > 0 && all.found[namespaceColumn] {
		return fmt.Errorf("line %d has no %s but other lines have one: the namespace of the send is unknown",
			all.lacking, all.names[namespaceColumn])
	}
	return all.missing()
}

// missing returns an error if no object has a column that was requested by name, which may be
// misspelled.
func (r *objectRows) missing() error {
	for i, asked := range r.options.asked() {
		if asked != "" && !r.found[i] && len(r.seen) > 0 {
			return fmt.Errorf("column %q does not exist in any line: the columns are %q",
				asked, slices.Sorted(maps.Keys(r.seen)))
		}
	}
	return nil
}

// row parses the n-th line, a JSON object, into a row.
func (r *objectRows) row(line []byte, n int64) (row SendRow, err error) {
	record, there, given, err := r.members(line)
	if err != nil {
		return row, err
	}
	for i := range 2 {
		if !given[i] {
			return row, fmt.Errorf("%s is missing", r.names[i])
		}
	}
	places := inOrder
	if !there[namespaceColumn] {
		places[namespaceColumn] = -1
		if r.lacking == 0 {
			r.lacking = n
		}
	}
	return r.options.rowOf(places, record[:])
}

// members returns the values of the members that are columns, which of them exist, and which are not
// null.
func (r *objectRows) members(line []byte) (record [sendColumns]string, there, given [sendColumns]bool, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return record, there, given, errors.New("line is not a JSON object")
	}
	var fault error // the first fault; parsing continues to the end of the object
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return record, there, given, fmt.Errorf("line is not a JSON object: %w", err)
		}
		name := token.(string) // a token within an object after More is a name
		if len(r.seen) < mostNames && !r.seen[name] {
			r.seen[name] = true
		}
		i := slices.Index(r.names[:], name)
		if i < 0 {
			var other json.RawMessage
			if err := decoder.Decode(&other); err != nil {
				return record, there, given, fmt.Errorf("line is not a JSON object: %w", err)
			}
			continue
		}
		if there[i] && fault == nil {
			fault = fmt.Errorf("field %s is given twice", name)
		}
		there[i], r.found[i] = true, true
		var value any
		if err := decoder.Decode(&value); err != nil {
			return record, there, given, fmt.Errorf("line is not a JSON object: %w", err)
		}
		if record[i], given[i], err = textIn(value); err != nil && fault == nil {
			fault = fmt.Errorf("%s %w", name, err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return record, there, given, fmt.Errorf("line is not a JSON object: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return record, there, given, errors.New("line has more text after its JSON object")
	}
	return record, there, given, fault
}

// textIn returns a text or a number as a text; given is false for null.
func textIn(value any) (text string, given bool, err error) {
	switch value := value.(type) {
	case string:
		return value, true, nil
	case json.Number:
		return value.String(), true, nil
	case nil:
		return "", false, nil
	}
	return "", false, errors.New("must be a string or a number")
}
