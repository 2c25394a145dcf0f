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

// readParquet reads a Parquet file of sends row by row.
func (o *SendOptions) readParquet(file *File, yield func(SendRow, *RowError, int64) error) (err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics on damaged pages
			err = fmt.Errorf("parquet: damaged: %v", p)
		}
	}()
	from, size, err := file.Seekable()
	if err != nil {
		return err
	}
	opened, err := parquet.OpenFile(from, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	var names []string
	columns := opened.Root().Columns()
	for _, column := range columns {
		names = append(names, column.Name())
	}
	places, err := o.find(names)
	if err != nil {
		return err
	}
	reader := rowReader{options: o, places: places, yield: yield}
	for i, place := range places {
		if place < 0 {
			continue
		}
		if !columns[place].Leaf() || columns[place].Repeated() {
			return fmt.Errorf("column %q holds more than one value per row", names[place])
		}
		reader.leaves[i], reader.places[i] = columns[place], columns[place].Index()
	}
	if reader.stamp, err = stampOf(columns[places[1]]); err != nil {
		return err
	}
	for _, group := range opened.RowGroups() {
		if err := reader.group(group); err != nil {
			return err
		}
	}
	return file.CheckLength()
}

// rowReader converts Parquet rows into sends.
type rowReader struct {
	options *SendOptions
	places  [sendColumns]int
	leaves  [sendColumns]*parquet.Column
	stamp   *format.TimestampType // type of the time column; nil: text or a number
	n       int64
	yield   func(SendRow, *RowError, int64) error
}

func (r *rowReader) group(group parquet.RowGroup) (err error) {
	rows := group.Rows()
	defer func() { err = errors.Join(err, rows.Close()) }()
	buffer := make([]parquet.Row, 256)
	for {
		n, err := rows.ReadRows(buffer)
		for _, values := range buffer[:n] {
			r.n++
			var bad *RowError
			row, fault := r.row(values)
			if fault != nil {
				bad = &RowError{r.n, fault}
			}
			if err := r.yield(row, bad, r.n); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("parquet: %w", err)
		}
	}
}

func (r *rowReader) row(values parquet.Row) (row SendRow, err error) {
	var record [sendColumns]string
	for _, value := range values {
		for i, place := range r.places {
			switch {
			case r.leaves[i] == nil || value.Column() != place || value.IsNull():
			case i == 1 && r.stamp != nil:
				record[i] = timestampText(value, r.stamp)
			default:
				record[i] = textOf(value, isUnsigned(r.leaves[i]))
			}
		}
	}
	places := inOrder
	if r.leaves[namespaceColumn] == nil {
		places[namespaceColumn] = -1
	}
	return r.options.rowOf(places, record[:])
}

func isUnsigned(column *parquet.Column) bool {
	logical := column.Type().LogicalType()
	if logical == nil {
		return false
	}
	integer, ok := logical.Value.(*format.IntType)
	return ok && !integer.IsSigned
}

// textOf returns a value in the form that text formats use.
func textOf(value parquet.Value, unsigned bool) string {
	if unsigned && value.Kind() == parquet.Int32 {
		return strconv.FormatUint(uint64(value.Uint32()), 10)
	}
	switch value.Kind() {
	case parquet.Int32:
		return strconv.FormatInt(int64(value.Int32()), 10)
	case parquet.Int64:
		return strconv.FormatInt(value.Int64(), 10)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return string(value.ByteArray())
	}
	return value.String()
}

// stampOf returns the timestamp type of a column, or nil if the column holds texts or numbers. stampOf rejects types
// that do not denote an instant.
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

// timestampText returns a TIMESTAMP value as text, without an offset if the column is not adjusted to
// UTC.
func timestampText(value parquet.Value, stamp *format.TimestampType) string {
	unit := stamp.Unit.Value.Duration()
	per := int64(time.Second / unit)
	at := time.Unix(value.Int64()/per, value.Int64()%per*int64(unit)).UTC()
	if stamp.IsAdjustedToUTC {
		return at.Format("2006-01-02T15:04:05.999Z")
	}
	return at.Format("2006-01-02T15:04:05.999")
}
