package format

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// readParquet reads a Parquet file about sends row by row.
func (r *sendReader) readParquet() (err error) {
	defer damaged(&err)
	from, size, err := r.file.Seekable()
	if err != nil {
		return err
	}
	opened, err := openParquet(from, size)
	if err != nil {
		return err
	}
	rows := &parquetRows{sendReader: r, parquetFile: parquetFile{from: from, opened: opened}}
	if err := rows.find(); err != nil {
		return err
	}
	if err := rows.check(); err != nil {
		return err
	}
	for i := range opened.RowGroups() {
		if err := rows.read(i); err != nil {
			return err
		}
	}
	return r.file.CheckLength()
}

// The struct parquetRows converts the rows of a Parquet file about sends to sends (messages that another system sent).
type parquetRows struct {
	*sendReader
	parquetFile
	columns []int                 // for each column that the parser reads: column index in a record
	as      []idType              // storage type of each column that the parser reads; only some types matter
	stamp   *format.TimestampType // type of the time column; nil: text or a number
	n       int64                 // rows so far
	row     record
}

// The method "find" chooses the columns of the Parquet file that belong to a send.
func (r *parquetRows) find() error {
	columns := r.opened.Root().Columns()
	var names []string
	for _, column := range columns {
		names = append(names, column.Name())
	}
	places, err := r.sendReader.find(names)
	if err != nil {
		return err
	}
	for i, place := range places {
		if place < 0 {
			continue
		}
		if !columns[place].Leaf() || columns[place].Repeated() {
			return fmt.Errorf("column %q holds more than one value per row", names[place])
		}
		as, _ := integerType(columns[place].Type())
		if i == columnUser && r.parser != nil {
			if as, err = otherTypeOf(columns[place], r.Scheme.Kind()); err != nil {
				return err
			}
		}
		r.columns, r.leaves, r.as = append(r.columns, i), append(r.leaves, columns[place]), append(r.as, as)
	}
	r.stamp, err = stampOf(r.leaves[columnAt])
	return err
}

// The method "read" reads the sends of one row group of the Parquet file.
func (r *parquetRows) read(i int) (err error) {
	group, err := r.group(i)
	if err != nil {
		return err
	}
	var chunks []parquet.ColumnChunk
	for _, column := range group.leaves {
		chunks = append(chunks, group.ColumnChunks()[column.Index()])
	}
	rows := parquet.NewColumnChunkRowReader(chunks)
	defer func() { err = errors.Join(err, rows.Close()) }()
	buffer := make([]parquet.Row, 256)
	before := r.n
	for {
		n, err := rows.ReadRows(buffer)
		for _, values := range buffer[:n] {
			r.n++
			if len(values) != len(chunks) {
				return fmt.Errorf("parquet: file is damaged: row %d has %d of %d columns", r.n, len(values),
					len(chunks))
			}
			if err := r.take(r.n, r.fields(values, group.wide), nil); err != nil {
				return err
			}
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("parquet: %w", err)
		}
		if err == io.EOF && r.n-before != group.NumRows() {
			return fmt.Errorf("parquet: file is damaged: a row group has %d rows, but its metadata says %d", r.n-before,
				group.NumRows())
		}
		if err == io.EOF {
			return nil
		}
	}
}

func (r *parquetRows) fields(values parquet.Row, wide []bool) *record {
	fields := &r.row
	*fields = record{}
	for k, value := range values {
		i := r.columns[k]
		switch {
		case value.IsNull():
			fields[i] = []byte{}
		case i == columnAt && r.stamp != nil:
			fields[i] = timestampText(value, r.stamp)
		case wide[k]:
			fields[i] = textOf(parquet.Int32Value(int32(value.Int64())), r.as[k])
		case r.as[k] == packed:
			fields[i] = r.Scheme.Unpack(nil, value.ByteArray())
		default:
			fields[i] = textOf(value, r.as[k])
		}
	}
	return fields
}

// textOf converts a value in a Parquet file to the corresponding text in a CSV file.
func textOf(value parquet.Value, as idType) []byte {
	switch {
	case as == unsigned && value.Kind() == parquet.Int32:
		return strconv.AppendUint(nil, uint64(value.Uint32()), 10)
	case as == unsigned && value.Kind() == parquet.Int64:
		return strconv.AppendUint(nil, value.Uint64(), 10)
	case as == decimal:
		return decimalText(value.ByteArray())
	}
	switch value.Kind() {
	case parquet.Int32:
		return strconv.AppendInt(nil, int64(value.Int32()), 10)
	case parquet.Int64:
		return strconv.AppendInt(nil, value.Int64(), 10)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return value.ByteArray()
	}
	return []byte(value.String())
}

// stampOf returns the timestamp type of a Parquet column. For a column of texts or numbers, the result is nil. stampOf
// rejects types that are not instants, such as DATE.
func stampOf(column *parquet.Column) (*format.TimestampType, error) {
	refused := func(what string) error {
		return fmt.Errorf(
			"column %q holds %s, but times must be TIMESTAMP, text, or seconds or milliseconds since 1970",
			column.Name(), what)
	}
	if column.Type().Kind() == parquet.Int96 {
		return nil, refused("INT96")
	}
	logical := column.Type().LogicalType()
	if logical == nil {
		return nil, nil
	}
	switch is := logical.Value.(type) {
	case *format.DateType:
		return nil, refused("DATE, days without a time")
	case *format.TimeType:
		return nil, refused("TIME, times without a day")
	case *format.TimestampType:
		if column.Type().Kind() == parquet.Int64 && is.Unit.Value != nil {
			return is, nil
		}
	}
	return nil, nil
}

// timestampText converts a TIMESTAMP value of a Parquet column to text. If the Parquet column is not adjusted to UTC,
// the text has no offset from UTC.
func timestampText(value parquet.Value, stamp *format.TimestampType) []byte {
	unit := stamp.Unit.Value.Duration()
	per := int64(time.Second / unit)
	at := time.Unix(value.Int64()/per, value.Int64()%per*int64(unit)).UTC()
	if stamp.IsAdjustedToUTC {
		return at.AppendFormat(nil, "2006-01-02T15:04:05.999Z")
	}
	return at.AppendFormat(nil, "2006-01-02T15:04:05.999")
}
