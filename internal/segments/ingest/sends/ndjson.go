package sends

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

// objects reads lines of JSON objects.
type objects struct {
	options *Options
	names   [4]string
	seen    map[string]bool // names of members, mostNames of them
	found   [4]bool         // the columns that an object had
}

// mostNames is how many names of members are told of a file that lacks one.
const mostNames = 50

func (o *Options) readNDJSON(file io.Reader, yield func(Row, *RowError, int64) error) error {
	all := &objects{options: o, names: o.names(), seen: map[string]bool{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	n := int64(0)
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var bad *RowError
		row, err := all.row(lines.Bytes())
		if err != nil {
			bad = &RowError{n, err}
		}
		if err := yield(row, bad, n); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d: more than %d bytes", n+1, maxLine)
	}
	if lines.Err() != nil {
		return fmt.Errorf("line %d: %w", n+1, lines.Err())
	}
	return all.missing()
}

// missing is the fault of a column that was named and that no object has: it may be misspelled.
func (r *objects) missing() error {
	for i, asked := range r.options.asked() {
		if asked != "" && !r.found[i] && len(r.seen) > 0 {
			return fmt.Errorf("there is no column %q in any line, among %q", asked, slices.Sorted(maps.Keys(r.seen)))
		}
	}
	return nil
}

// row is the row of a JSON object.
func (r *objects) row(line []byte) (row Row, err error) {
	record, given, err := r.members(line)
	if err != nil {
		return row, err
	}
	for i := range 2 {
		if !given[i] {
			return row, fmt.Errorf("%s is missing", r.names[i])
		}
	}
	return r.options.rowOf([4]int{0, 1, 2, 3}, record[:])
}

// members is the members that are columns, and which of them are there and not null.
func (r *objects) members(line []byte) (record [4]string, given [4]bool, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return record, given, errors.New("not a JSON object")
	}
	var twice [4]bool
	var fault error // the first; what follows it is looked at, as the object has it
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return record, given, fmt.Errorf("not a JSON object: %w", err)
		}
		name := token.(string) // More was true within an object
		if len(r.seen) < mostNames && !r.seen[name] {
			r.seen[name] = true
		}
		i := slices.Index(r.names[:], name)
		if i < 0 {
			var other json.RawMessage
			if err := decoder.Decode(&other); err != nil {
				return record, given, fmt.Errorf("not a JSON object: %w", err)
			}
			continue
		}
		if twice[i] && fault == nil {
			fault = fmt.Errorf("%s is there twice", name)
		}
		twice[i], r.found[i] = true, true
		var value any
		if err := decoder.Decode(&value); err != nil {
			return record, given, fmt.Errorf("not a JSON object: %w", err)
		}
		if record[i], given[i], err = textIn(value); err != nil && fault == nil {
			fault = fmt.Errorf("%s %w", name, err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return record, given, fmt.Errorf("not a JSON object: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return record, given, errors.New("not one JSON object: something follows it")
	}
	return record, given, fault
}

// textIn is a text or a number; false: null.
func textIn(value any) (text string, given bool, err error) {
	switch value := value.(type) {
	case string:
		return value, true, nil
	case json.Number:
		return value.String(), true, nil
	case nil:
		return "", false, nil
	}
	return "", false, errors.New("is neither text nor a number")
}
