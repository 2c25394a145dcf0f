package format

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"capper/internal/ids"
)

// hasHeader reports whether the first row of the file names the columns.
func (o *DelimitedOptions) hasHeader(first []string) bool {
	switch o.Header {
	case HeaderYes:
		return true
	case HeaderNo:
		return false
	}
	if isName(o.IDColumn) || o.Table && isName(o.SegmentColumn) {
		return true
	}
	if n, err := strconv.Atoi(o.IDColumn); err == nil {
		return n >= 1 && n <= len(first) && namesID(first[n-1])
	}
	named := false
	for _, field := range first {
		if _, err := strconv.ParseFloat(field, 64); err == nil {
			return false // a row of data, because no column has a number as its name
		}
		if o.Scheme != nil && o.Scheme.Kind() == ids.UUID {
			if _, err := o.Scheme.Parse([]byte(field)); err == nil {
				return false
			}
		}
		named = named || namesID(field)
	}
	return named
}

// isName reports whether the argument is the name of a column, and not a number or empty.
func isName(column string) bool {
	_, err := strconv.Atoi(column)
	return column != "" && err != nil
}

// findColumn returns the index of the requested column (a name, or a number from 1). If no column is requested,
// findColumn returns the index of the column with the usual name. Without a column with a usual name, findColumn
// returns the result of the function "likely".
func findColumn(asked, usual string, first []string, header bool, likely func(first []string, header bool) (int,
	error)) (int, error) {
	if n, err := strconv.Atoi(asked); err == nil {
		if n < 1 || n > len(first) {
			return 0, fmt.Errorf("column %d does not exist: the first row has %d columns", n, len(first))
		}
		return n - 1, nil
	}
	if asked != "" {
		if !header {
			return 0, fmt.Errorf("column %q cannot be found by name: the file is read without a header", asked)
		}
		return byName(asked, first)
	}
	if header {
		if i, err := byName(usual, first); err == nil {
			return i, nil
		}
	}
	return likely(first, header)
}

// likelyID chooses the id column if no column is requested: the column with a usual name for user ids, or else the
// first column. For text ids in CSV and TSV files, every word could be an id. Without a requested column, such a file
// must therefore have one column, and the options must state whether the file has a header.
func (o *DelimitedOptions) likelyID(first []string, header bool) (int, error) {
	if header {
		if i, err := userColumn(first); i >= 0 || err != nil {
			return i, err
		}
	}
	if o.Kind != Text && o.Scheme != nil && o.Scheme.Kind() == ids.Text && (len(first) > 1 || o.Header == headerAuto) {
		return 0, fmt.Errorf(
			"the column with the user ids is unknown, because every field of the first row %q could be an id: "+
				"select a column with --id-column (capper: --column), by its name, or by its number if the file has "+
				"no header",
			Clip([]byte(strings.Join(first, ","))))
	}
	return 0, nil
}

// otherThan returns a function that finds the column with the names of segments or sets. In a file with two columns,
// this column is the one that is not the id column. For more than two columns, the returned function returns an error,
// because a wrong guess, such as a date column, would create one set per day.
func otherThan(id int) func(first []string, header bool) (int, error) {
	return func(first []string, _ bool) (int, error) {
		switch len(first) {
		case 1:
			return 0, errors.New("the segment column is missing: the first row has 1 column")
		case 2:
			return 1 - id, nil
		}
		return 0, fmt.Errorf(
			"the column with segment or set names is unknown: the first row is %q: "+
				"set --segment-column, or the key 'segment_column' in a build file",
			Clip([]byte(strings.Join(first, ","))))
	}
}

func byName(name string, first []string) (int, error) {
	found := -1
	for i, field := range first {
		if !strings.EqualFold(field, name) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("column %q exists twice: select it by number", name)
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("column %q does not exist: the header is %q", name, strings.Join(first, ","))
	}
	return found, nil
}

// The struct "layout" contains the positions of the columns with ids and names in a CSV, TSV or text file.
type layout struct {
	dialect
	id      int // index of the id column
	segment int // index of the column of names; -1 if the file is not a table
	columns int // number of columns in each row
	header  bool
	scheme  *ids.Scheme // nil: ids are dense
}

// isID reports whether a field is a valid user id.
func (l *layout) isID(field []byte) bool {
	if l.scheme == nil {
		_, ok := parseID(field)
		return ok
	}
	_, err := l.scheme.Parse(bytes.TrimSpace(field))
	return err == nil
}

// The method "layout" finds the column with the ids, and the column with the segment or set names, by the first row of
// the file.
func (o *DelimitedOptions) layout(first []string, d dialect) (*layout, error) {
	if o.Kind == Text && o.Table {
		return nil, fmt.Errorf("a table needs two columns, but a file in the format 'text' has one: " +
			"if the file has two columns, set --format csv or tsv")
	}
	shape := &layout{dialect: d, segment: -1, columns: len(first), scheme: o.Scheme}
	shape.header = o.hasHeader(first)
	var err error
	if shape.id, err = findColumn(o.IDColumn, "user_id", first, shape.header, o.likelyID); err != nil {
		return nil, err
	}
	if !o.Table {
		return shape, nil
	}
	if shape.segment, err = findColumn(o.SegmentColumn, "segment", first, shape.header,
		otherThan(shape.id)); err != nil {
		return nil, err
	}
	if shape.segment == shape.id {
		return nil, fmt.Errorf("column %d must not hold both the user id and the segment: select two columns",
			shape.id+1)
	}
	return shape, nil
}
