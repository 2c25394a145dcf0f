package delimited

import (
	"fmt"
	"strconv"
	"strings"

	"capper/internal/segments/ingest/rows"
)

// hasHeader reports whether the first row names the columns.
func (o *Options) hasHeader(first []string) bool {
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
		return n >= 1 && n <= len(first) && rows.NamesID(first[n-1])
	}
	named := false
	for _, field := range first {
		if _, err := strconv.ParseFloat(field, 64); err == nil {
			return false // a row of data: no column is called by a number
		}
		named = named || rows.NamesID(field)
	}
	return named
}

// isName: a column given by name, not by number and not left open.
func isName(column string) bool {
	_, err := strconv.Atoi(column)
	return column != "" && err != nil
}

// findColumn returns the index of a column that is asked for by name or number,
// or of the usual one when nothing is asked for.
func findColumn(asked, usual string, position int, first []string, header bool) (int, error) {
	if n, err := strconv.Atoi(asked); err == nil {
		if n < 1 || n > len(first) {
			return 0, fmt.Errorf("no column %d: the first row has %d", n, len(first))
		}
		return n - 1, nil
	}
	if asked != "" {
		if !header {
			return 0, fmt.Errorf("no column %q: the file is read without a header", asked)
		}
		return byName(asked, first)
	}
	if header {
		if i, err := byName(usual, first); err == nil {
			return i, nil
		}
		if position == 0 {
			if i, err := rows.UserColumn(first); i >= 0 || err != nil {
				return i, err
			}
		}
	}
	if position >= len(first) {
		return 0, fmt.Errorf("no column for the %s: the first row has %d", usual, len(first))
	}
	return position, nil
}

func byName(name string, first []string) (int, error) {
	found := -1
	for i, field := range first {
		if !strings.EqualFold(field, name) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("column %q is there twice: say which by its number", name)
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("no column %q: the header is %q", name, strings.Join(first, ","))
	}
	return found, nil
}
