package ingest

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// layout is where the columns of a delimited file are.
type layout struct {
	dialect
	id      int // index of the id's column
	segment int // index of the segment's column, -1 when the file is no table
	columns int // in every record
	header  bool
}

// readDelimited reads text, CSV and TSV. The first record decides the layout.
func (j *job) readDelimited(ctx context.Context, src *source, format Format) error {
	if err := skipBOM(src); err != nil {
		return err
	}
	head, err := src.peek(blockBytes)
	if err != nil {
		return err
	}
	if len(head) == 0 {
		return nil // an empty part of an export
	}
	d, err := j.file.input.dialect(format)
	if err != nil {
		return err
	}
	first, size, fault := d.firstRecord(head, format == Text)
	shape, err := j.layout(first, format, d)
	if err != nil {
		return err
	}
	if format != Text {
		j.column = strconv.Itoa(shape.id + 1)
	}
	line := int64(1)
	if shape.header {
		j.column = first[shape.id]
		if err := j.takeHeader(shape, head[:size], fault); err != nil {
			return err
		}
		line += int64(bytes.Count(head[:size], []byte{'\n'}))
		if _, err := src.Discard(size); err != nil {
			return err
		}
	} else if shape.swallowsFirst(bytes.TrimRight(head[:size], "\r\n")) {
		return fmt.Errorf("line 1: %s", reasonSwallowed)
	}
	if format == Text {
		return j.readBlocks(ctx, src, line, records{whole: wholeLines, parse: parseText})
	}
	return j.readBlocks(ctx, src, line, records{
		whole: shape.wholeRecords, parse: shape.parse, nulls: shape.columns == 1, escaped: shape.endsEscaped,
	})
}

// takeHeader notes the header. One whose quotes are not in order, or that
// encloses rows, would take these with it.
func (j *job) takeHeader(shape *layout, record []byte, fault error) error {
	record = bytes.TrimRight(record, "\r\n")
	j.header = clip(record, maxShown)
	if fault != nil {
		return fault
	}
	lines := int64(bytes.Count(record, []byte{'\n'})) + 1
	if lines == 1 {
		return nil
	}
	if shape.headerSwallows(record) {
		return fmt.Errorf("the header: %s", reasonSwallowed)
	}
	j.multiline.note(1, lines)
	return nil
}

// firstRecord splits the first record of a file into fields, quotes removed. A
// text has one field a line. The fault is for whoever takes it for a header:
// a row of data is judged as all rows are.
func (d *dialect) firstRecord(head []byte, text bool) (fields []string, size int, fault error) {
	end := bytes.IndexByte(head, '\n') + 1
	if !text {
		end = d.recordEnd(head, 0)
	}
	if end <= 0 {
		end = len(head)
	}
	record := bytes.TrimRight(head[:end], "\r\n")
	if text {
		return []string{strings.TrimSpace(string(record))}, end, nil
	}
	for at := 0; at <= len(record); {
		value, ok, next := d.field(record, at)
		if !ok {
			fault = fmt.Errorf("the header: %s", reasonQuote)
		}
		fields = append(fields, strings.TrimSpace(string(value)))
		at = next + 1
	}
	return fields, end, fault
}

// layout finds the columns by the first record.
func (j *job) layout(first []string, format Format, d dialect) (*layout, error) {
	in := j.file.input
	if format == Text && j.table {
		return nil, fmt.Errorf("a table needs two columns: say --format csv or tsv if this is one")
	}
	shape := &layout{dialect: d, segment: -1, columns: len(first)}
	shape.header = hasHeader(in, first, j.table)
	var err error
	if shape.id, err = findColumn(in.IDColumn, "user_id", 0, first, shape.header); err != nil {
		return nil, err
	}
	if !j.table {
		return shape, nil
	}
	if shape.segment, err = findColumn(in.SegmentColumn, "segment", 1, first, shape.header); err != nil {
		return nil, err
	}
	if shape.segment == shape.id {
		return nil, fmt.Errorf("column %d is both the id's and the segment's", shape.id+1)
	}
	return shape, nil
}

func hasHeader(in Input, first []string, table bool) bool {
	switch in.Header {
	case HeaderYes:
		return true
	case HeaderNo:
		return false
	}
	if isName(in.IDColumn) || table && isName(in.SegmentColumn) {
		return true
	}
	if n, err := strconv.Atoi(in.IDColumn); err == nil {
		return n >= 1 && n <= len(first) && namesID(first[n-1])
	}
	named := false
	for _, field := range first {
		if _, err := strconv.ParseFloat(field, 64); err == nil {
			return false // a row of data: no column is called by a number
		}
		named = named || namesID(field)
	}
	return named
}

// isName: a column given by name, not by number and not left open.
func isName(column string) bool {
	_, err := strconv.Atoi(column)
	return column != "" && err != nil
}

// userName are names of the column of the users' ids, however they are spelled:
// user_id, customer-id, MEMBERID, uid, subscriber. idName are those and the names
// of other ids: order_id, sessionId. Words that merely end like one, such as paid,
// are neither.
var (
	userName = regexp.MustCompile(`^(?i:[ _.-]*(u?[ _.-]*id|(user|member|customer|account|client|subscriber|person|profile|contact|recipient)([ _.-]*id)?))$`)
	idName   = regexp.MustCompile(userName.String() + `|[ _.-](?i:id)$|[a-z](Id|ID)$`)
)

// namesID reports whether a field of a first record is the name of an id's
// column, whatever the id is of. A sentence is none, such as "ERROR: there is no
// column user_id".
func namesID(field string) bool {
	return idName.MatchString(field) && strings.Count(field, " ") < 3 && !strings.ContainsAny(field, ":;,'\"()<>")
}

// namesUser reports whether a field is the name of the column of the users' ids.
func namesUser(field string) bool { return namesID(field) && userName.MatchString(field) }

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
			if i, err := onlyUser(first); i >= 0 || err != nil {
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

// onlyUser is the column that looks like the users' ids, -1 when none looks like
// any id. The id of something else is never taken for a user's, nor passed over
// in silence: orders are numbers just as users are.
func onlyUser(first []string) (int, error) {
	found := -1
	var others []string
	for i, field := range first {
		switch {
		case !namesID(field):
		case !namesUser(field):
			others = append(others, strconv.Quote(field))
		case found >= 0:
			return 0, fmt.Errorf("columns %q and %q may both be the id's: say which", first[found], field)
		default:
			found = i
		}
	}
	if found < 0 && others != nil {
		return 0, fmt.Errorf("no column is named as the ids of users are, and there are other ids (%s): say which column it is with --id-column (capper: --column)", strings.Join(others, ", "))
	}
	return found, nil
}
