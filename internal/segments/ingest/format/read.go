package format

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capper/internal/ids"
)

// Columns has the names of the columns in a file about sends (messages that another system sent).
type Columns struct{ User, At, Channel, MessageID, Namespace string }

// SendOptions contains the settings for reading a file about sends (messages that another system sent).
type SendOptions struct {
	Columns Columns // a column whose name is not "" must exist
	Format  string  // csv, tsv, ndjson, parquet; "": by the file's name, else by its first bytes
	Zone    *time.Location
	// If a row has no channel or no message id, Channel or MessageID applies to this row.
	Channel, MessageID string
	Namespace          *string         // namespace of all rows; nil: from the column
	Channels           map[string]bool // the configured channels; nil: unknown
	FinalNewline       bool            // false: the last line of a text may lack a line break
	Now                time.Time
	Scheme             *ids.Scheme // kind and hash key of the user ids; nil: dense ids
}

// The variable "usual" has the default names of the columns in a file about sends (messages that another system sent).
var usual = Columns{"user_id", "at", "channel", "message_id", "namespace"}

// The constants columnUser to columnNamespace are the column indexes in a record (the fields of one send), and
// sendColumns is the number of columns.
const (
	columnUser = iota
	columnAt
	columnChannel
	columnMessageID
	columnNamespace
	sendColumns
)

// A record contains the fields of one send (message that another system sent), by column. If the row has no such
// column, the field of the record is nil.
type record [sendColumns][]byte

func (c *Columns) list() [sendColumns]string {
	return [sendColumns]string{c.User, c.At, c.Channel, c.MessageID, c.Namespace}
}

// sendReader reads one file about sends.
type sendReader struct {
	SendOptions
	file  *File
	asked [sendColumns]string // the names of columns that must exist
	names [sendColumns]string // the names of all columns
	yield func(SendRow, *RowError) error

	parser *ids.Parser // nil: ids are dense
	id     []byte      // canonical id of the current row
}

// ReadSends reads a file about sends (messages that another system sent), and calls the function "yield" for each row.
// If a row is not a valid send, the function "yield" gets a RowError. If the function "yield" returns an error,
// ReadSends stops and returns this error.
func ReadSends(ctx context.Context, from Opener, name string, o SendOptions, progress Progress,
	yield func(SendRow, *RowError) error) (err error) {
	file, err := Open(ctx, from, name, progress)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	r := &sendReader{SendOptions: o, file: file, asked: o.Columns.list(), names: usual.list(), yield: yield}
	for i, asked := range r.asked {
		r.names[i] = cmp.Or(asked, r.names[i])
	}
	if o.Scheme != nil && o.Scheme.Kind() != ids.Dense {
		r.parser = o.Scheme.NewParser()
	}
	format, err := o.formatOf(name, file)
	if err == nil {
		switch format {
		case "parquet":
			err = r.readParquet()
		case "ndjson":
			err = r.readNDJSON()
		case "tsv":
			err = r.readCSV('\t')
		default:
			err = r.readCSV(',')
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// The method "take" converts the fields of a row to a send. The method "take" calls the function yield with the send
// or, for a bad row, with the reason.
func (r *sendReader) take(line int64, fields *record, fault error) error {
	var row SendRow
	if fault == nil {
		row, fault = r.rowOf(fields)
	}
	if fault != nil {
		return r.yield(row, &RowError{line, fault})
	}
	return r.yield(row, nil)
}

// SendExtensions returns the formats of files about sends, by the extension of the file's name.
func SendExtensions() map[string]string {
	return map[string]string{"csv": "csv", "tsv": "tsv", "ndjson": "ndjson", "jsonl": "ndjson", "json": "ndjson",
		"parquet": "parquet", "pq": "parquet"}
}

// formatOf returns the format of a file about sends. The requested format takes precedence over the extension of the
// file's name, and the extension over the first bytes of the file.
func (o *SendOptions) formatOf(name string, file *File) (string, error) {
	plain, _ := WithoutPacking(name)
	format := cmp.Or(o.Format, SendExtensions()[plain[strings.LastIndexByte(plain, '.')+1:]])
	head, err := file.Head(4)
	switch {
	case err != nil:
		return "", err
	case string(head) == "PAR1":
		if format != "" && format != "parquet" {
			return "", fmt.Errorf("the file has the format Parquet instead of %s", format)
		}
		return "parquet", nil
	case format == "parquet":
		return "", errors.New("the content is not Parquet")
	case format == "" && strings.HasPrefix(string(head), "{"):
		return "ndjson", nil
	}
	if err := file.SkipBOM(); err != nil {
		return "", err
	}
	return cmp.Or(format, "csv"), nil
}

// The struct csvRows parses the rows of a CSV or TSV file about sends by the rules of RFC 4180. In TSV, the delimiter
// is a tab.
type csvRows struct {
	*sendReader
	dialect
	places  [sendColumns]int // indexes of the columns; -1: the column does not exist
	columns int              // number of columns; 0 until the header has been read
	fields  record           // of the current row
}

func (r *sendReader) readCSV(delimiter byte) (err error) {
	rows := &csvRows{sendReader: r, dialect: dialect{delimiter: delimiter, quote: '"'}}
	syntax := Syntax{Whole: rows.wholeRows, Nulls: true}
	blocks := NewBlocks(r.file, 1, syntax)
	block := make([]byte, 0, r.file.stored.bufferBytes())
	for last := false; !last; {
		var line int64
		if block, line, last, err = blocks.Next(block); err != nil {
			return err
		}
		if err := rows.parse(block, line); err != nil {
			return err
		}
	}
	if r.FinalNewline && syntax.MayBeTruncated(block, blocks.Size()) {
		return errors.New("the last line does not end in a line break, so the file may be truncated: " +
			"export it again, or use --final-newline optional")
	}
	return nil
}

// The method "parse" parses a block of complete rows of a file about sends. The first row of the file names the
// columns. Empty lines are not rows.
func (r *csvRows) parse(block []byte, line int64) (err error) {
	for len(block) > 0 {
		columns, inOrder, size, row := r.row(block, r.places[:], r.fields[:])
		lines := int64(bytes.Count(row, []byte{'\n'})) + 1
		switch {
		case len(row) == 0:
		case !inOrder:
			return r.misquoted(block, line)
		case r.columns == 0:
			err = r.takeHeader(block)
		case columns != r.columns:
			err = r.take(line, nil, csv.ErrFieldCount)
		default:
			if lines > 1 {
				r.joinCRLF()
			}
			err = r.take(line, &r.fields, nil)
		}
		if err != nil {
			return err
		}
		line += lines
		block = block[size:]
	}
	return nil
}

// joinCRLF replaces each carriage return with a line feed inside fields by a single line feed.
func (r *csvRows) joinCRLF() {
	for i, field := range r.fields {
		if bytes.IndexByte(field, '\r') >= 0 {
			r.fields[i] = bytes.ReplaceAll(field, []byte("\r\n"), []byte{'\n'})
		}
	}
}

// The method "misquoted" parses a row with a faulty quote once more with encoding/csv, because the error of
// encoding/csv contains the position of the quote.
func (r *csvRows) misquoted(row []byte, line int64) error {
	standard := csv.NewReader(bytes.NewReader(row))
	standard.Comma = rune(r.delimiter)
	_, err := standard.Read()
	if fault := new(csv.ParseError); errors.As(err, &fault) {
		fault.StartLine += int(line) - 1
		fault.Line += int(line) - 1
	}
	return cmp.Or(err, error(csv.ErrQuote))
}

func (r *csvRows) takeHeader(header []byte) (err error) {
	fields, _ := r.allFields(header)
	var names []string
	for _, field := range fields {
		name := strings.ReplaceAll(string(field), "\r\n", "\n")
		if strings.Contains(name, "\r") {
			return fmt.Errorf("line 1: the column name %q must not contain a carriage return without a line feed: "+
				"lines must end with a line feed, or with carriage return and line feed", Clip([]byte(name)))
		}
		names = append(names, name)
	}
	r.columns, r.fields = len(fields), record{}
	r.places, err = r.find(names)
	return err
}

// The method "find" returns the index of each column of a send in a list of column names. For a missing column, the
// index is -1.
func (r *sendReader) find(names []string) (places [sendColumns]int, err error) {
	for i, name := range r.names {
		places[i] = slices.Index(names, name)
		switch {
		case places[i] < 0 && (i <= columnAt || r.asked[i] != ""):
			return places, &NoColumnError{fmt.Sprintf("column %q does not exist: the header is %q", name, names)}
		case places[i] >= 0 && slices.Contains(names[places[i]+1:], name):
			return places, fmt.Errorf("column %q exists twice", name)
		}
	}
	return places, nil
}
