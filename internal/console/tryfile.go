package console

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"capper/internal/ids"
)

// idColumns lists the accepted names of the column with user ids in an uploaded file. If several columns of an
// uploaded file have an accepted name, the page reads the first of them.
var idColumns = [...]string{"user_id", "id"}

// readFile reads an uploaded file with one user id on each line, with or without a header. The function readFile also
// reads a CSV file whose header names the column with user ids. Columns are separated by commas or tabs. If a header
// names the column, semicolons may separate the columns, too. The function readFile never guesses the column, because
// it could read other numbers as user ids. The result "fault" describes the first error in the file and names the line
// of the error.
func readFile(kind ids.Kind, from io.Reader) (found *given, fault string) {
	lines, fault := unpacked(from)
	if fault != "" {
		return newGiven(kind), fault
	}
	rows := csv.NewReader(lines)
	rows.Comma = separator(lines)
	isText := kind == ids.Text // text ids may begin or end with blanks
	rows.FieldsPerRecord, rows.ReuseRecord, rows.TrimLeadingSpace = -1, true, rows.Comma != '\t' && !isText
	found = newGiven(kind)
	column, columns := 0, 0
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return found, found.tooMany()
		}
		if err != nil {
			return found, fmt.Sprintf("The file is neither a list of ids nor a CSV: %v.", err)
		}
		line, _ := rows.FieldPos(0)
		if columns == 0 {
			var header bool
			if column, header, fault = columnOf(row, line); fault != "" {
				return found, fault
			}
			columns = len(row)
			if header {
				continue
			}
		}
		if len(row) != columns {
			return found, fmt.Sprintf("Line %d has %s, but line 1 has %d: every line needs the same columns.", line,
				values(len(row)), columns)
		}
		id := row[column]
		if !isText {
			id = strings.TrimSpace(id)
		}
		if id != "" || columns > 1 {
			if fault = found.add(id, line); fault != "" {
				return found, fault
			}
		}
	}
}

// columnOf finds the column with user ids from the first row of a file, and reports whether this row is a header.
func columnOf(row []string, line int) (column int, header bool, fault string) {
	for _, name := range idColumns {
		if i := slices.IndexFunc(row, func(title string) bool {
			return strings.EqualFold(strings.TrimSpace(title),
				name)
		}); i >= 0 {
			return i, true, ""
		}
	}
	if len(row) == 1 {
		return 0, false, ""
	}
	return 0, false, fmt.Sprintf("Line %d has %s, and none is named user_id or id. Add a header with user_id, or "+
		"use one id per line.", line,
		values(len(row)))
}

func values(n int) string {
	if n == 1 {
		return "1 value"
	}
	return fmt.Sprintf("%d values", n)
}
