package format

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"capper/internal/capping"
)

// Columns holds the names of the columns of a send.
type Columns struct{ User, At, Channel, MessageID, Namespace string }

// SendOptions says how to read files of sends.
type SendOptions struct {
	Columns Columns // a name that is not "" must be there
	Format  string  // csv, tsv, ndjson, parquet; "": by the file's name, else by its first bytes
	Zone    *time.Location
	// Channel and MessageID apply to rows without their own.
	Channel, MessageID string
	Namespace          *string         // namespace of all rows; nil: the column has it
	Channels           map[string]bool // the configured channels; nil: unknown
	FinalNewline       bool            // false: the last line of a text may lack a line break
	Now                time.Time
}

// usual holds the default names of the columns.
var usual = Columns{"user_id", "at", "channel", "message_id", "namespace"}

// sendColumns is the number of columns of a send; namespaceColumn is the index of the namespace.
const (
	sendColumns     = 5
	namespaceColumn = sendColumns - 1
)

// inOrder holds the column indexes of a record that consists of exactly these columns.
var inOrder = [sendColumns]int{0, 1, 2, 3, namespaceColumn}

// maxLine is the maximum length, in bytes, of a line of NDJSON and of a row of CSV or TSV, whose
// fields may contain line breaks.
const maxLine = 1 << 20

// ReadSends calls yield for each row of a file, with a RowError for a row that is not a valid send. If
// yield returns an error, ReadSends stops and returns it.
func ReadSends(ctx context.Context, from Opener, name string, o SendOptions, progress Progress,
	yield func(SendRow, *RowError) error) (err error) {
	file, err := Open(ctx, from, name, progress)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	checked := func(r SendRow, bad *RowError, line int64) error {
		if bad == nil {
			if fault := o.check(&r); fault != nil {
				bad = &RowError{line, fault}
			}
		}
		return yield(r, bad)
	}
	format, err := o.formatOf(name, file)
	if err == nil {
		switch format {
		case "parquet":
			err = o.readParquet(file, checked)
		case "ndjson":
			err = o.readNDJSON(file, checked)
		default:
			err = o.readCSV(file, format == "tsv", checked)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (o *SendOptions) formatOf(name string, file *File) (string, error) {
	plain, _ := WithoutPacking(name)
	known := map[string]string{"csv": "csv", "tsv": "tsv", "ndjson": "ndjson", "jsonl": "ndjson", "json": "ndjson",
		"parquet": "parquet", "pq": "parquet"}
	format := cmp.Or(o.Format, known[plain[strings.LastIndexByte(plain, '.')+1:]])
	head, err := file.Head(4)
	switch {
	case err != nil:
		return "", err
	case string(head) == "PAR1":
		if format != "" && format != "parquet" {
			return "", fmt.Errorf("the content is Parquet and not %s", format)
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

// ending remembers the last byte that was read, and the number of bytes.
type ending struct {
	io.Reader
	last byte
	read int64
}

// Read implements io.Reader.
func (e *ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if n > 0 {
		e.last, e.read = p[n-1], e.read+int64(n)
	}
	return n, err
}

// whole returns an error if a text may have been truncated.
func (o *SendOptions) whole(e *ending) error {
	if o.FinalNewline && e.last != '\n' && e.read > 16<<10 {
		return errors.New(
			"the last line does not end in a line break, so the file may be truncated: " +
				"export it again, or use --final-newline optional")
	}
	return nil
}

func (o *SendOptions) readCSV(file io.Reader, tabs bool, yield func(SendRow, *RowError, int64) error) error {
	end := &ending{Reader: file}
	bound := &bounded{from: end}
	r := csv.NewReader(bufio.NewReaderSize(bound, piece))
	r.ReuseRecord = true
	if tabs {
		r.Comma = '\t'
	}
	header, err := r.Read()
	if err == io.EOF {
		return nil // no rows: the caller checks whether all files together have any
	}
	if err != nil {
		return err
	}
	if name := slices.IndexFunc(header, func(name string) bool { return strings.Contains(name, "\r") }); name >= 0 {
		return fmt.Errorf(
			"line 1: %q contains a carriage return: "+
				"lines must end with a line feed, or with carriage return and line feed", clipText(header[name]))
	}
	places, err := o.find(header)
	if err != nil {
		return err
	}
	for record := header; ; {
		bound.ends(r, record)
		record, err = r.Read()
		if err == io.EOF {
			return o.whole(end)
		}
		if err != nil && !errors.Is(err, csv.ErrFieldCount) {
			return err
		}
		line, _ := r.FieldPos(0)
		var row SendRow
		var bad *RowError
		if err == nil {
			row, err = o.rowOf(places, record)
		}
		if err != nil {
			var parse *csv.ParseError
			if errors.As(err, &parse) {
				err = parse.Err
			}
			bad = &RowError{int64(line), err}
		}
		if err := yield(row, bad, int64(line)); err != nil {
			return err
		}
	}
}

// asked returns the requested column names, "" for those that are not requested.
func (o *SendOptions) asked() [sendColumns]string {
	return [sendColumns]string{
		o.Columns.User,
		o.Columns.At,
		o.Columns.Channel,
		o.Columns.MessageID,
		o.Columns.Namespace,
	}
}

// names returns the column names, including defaults.
func (o *SendOptions) names() (names [sendColumns]string) {
	asked := o.asked()
	for i, plain := range [sendColumns]string{usual.User, usual.At, usual.Channel, usual.MessageID, usual.Namespace} {
		names[i] = cmp.Or(asked[i], plain)
	}
	return names
}

// find returns the indexes of the columns: user, time, channel, message id, namespace; -1 for a column
// that does not exist.
func (o *SendOptions) find(names []string) (places [sendColumns]int, err error) {
	for i, name := range o.names() {
		places[i] = slices.Index(names, name)
		switch {
		case places[i] < 0 && (i < 2 || o.asked()[i] != ""):
			return places, fmt.Errorf("column %q does not exist: the header is %q", name, names)
		case places[i] >= 0 && slices.Contains(names[places[i]+1:], name):
			return places, fmt.Errorf("column %q exists twice", name)
		}
	}
	return places, nil
}

func (o *SendOptions) rowOf(places [sendColumns]int, record []string) (row SendRow, err error) {
	if row.User, err = userOf(record[places[0]]); err != nil {
		return row, fmt.Errorf("%s: %w", cmp.Or(o.Columns.User, usual.User), err)
	}
	if row.At, err = timeOf(record[places[1]], o.Zone); err != nil {
		return row, fmt.Errorf("%s: %w", cmp.Or(o.Columns.At, usual.At), err)
	}
	if places[2] >= 0 {
		row.Channel = record[places[2]]
	}
	if places[3] >= 0 {
		row.MessageID = record[places[3]]
	}
	row.Namespace, err = o.namespaceOf(places[namespaceColumn], record)
	return row, err
}

// namespaceOf returns the namespace of a row. An empty cell means the namespace without a name, never
// that of SendOptions.Namespace.
func (o *SendOptions) namespaceOf(place int, record []string) (string, error) {
	if place < 0 {
		if o.Namespace == nil {
			return "", nil
		}
		return *o.Namespace, nil
	}
	found, name := record[place], cmp.Or(o.Columns.Namespace, usual.Namespace)
	switch {
	case found != "" && !capping.IsName(found):
		return "", fmt.Errorf("%s: "+capping.NameRule, name, clipText(found))
	case o.Namespace != nil && found != *o.Namespace:
		return "", fmt.Errorf("%s: %q is not %q, the namespace of --namespace", name, found, *o.Namespace)
	}
	return found, nil
}
