package sends

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"capper/internal/segments/ingest/content"
)

// readParquet reads row by row.
func (o *Options) readParquet(file *content.File, yield func(Row, *RowError, int64) error) (err error) {
	defer func() {
		if p := recover(); p != nil { // the library's, of damaged pages
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
			return fmt.Errorf("column %q holds more than one value a row", names[place])
		}
		reader.leaves[i], reader.places[i] = columns[place], columns[place].Index()
	}
	for _, group := range opened.RowGroups() {
		if err := reader.group(group); err != nil {
			return err
		}
	}
	return file.CheckLength()
}

// rowReader turns rows of Parquet into sends.
type rowReader struct {
	options *Options
	places  [4]int
	leaves  [4]*parquet.Column
	n       int64
	yield   func(Row, *RowError, int64) error
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

func (r *rowReader) row(values parquet.Row) (row Row, err error) {
	var record [4]string
	for _, value := range values {
		for i, place := range r.places {
			if r.leaves[i] == nil || value.Column() != place || value.IsNull() {
				continue
			}
			if i == 1 {
				if at, ok, err := r.timestamp(value); ok || err != nil {
					row.At, record[1] = at, "0"
					if err != nil {
						return row, err
					}
					continue
				}
			}
			record[i] = textOf(value, unsigned(r.leaves[i]))
		}
	}
	at := row.At
	row, err = r.options.rowOf([4]int{0, 1, 2, 3}, record[:])
	if at != 0 {
		row.At = at
	}
	return row, err
}

func unsigned(column *parquet.Column) bool {
	logical := column.Type().LogicalType()
	if logical == nil {
		return false
	}
	integer, ok := logical.Value.(*format.IntType)
	return ok && !integer.IsSigned
}

// textOf is a value as a text has it.
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

// timestamp is the time of a TIMESTAMP, in milliseconds since 1970.
func (r *rowReader) timestamp(value parquet.Value) (at int64, ok bool, err error) {
	logical := r.leaves[1].Type().LogicalType()
	if logical == nil || value.Kind() != parquet.Int64 {
		return 0, false, nil
	}
	stamp, ok := logical.Value.(*format.TimestampType)
	if !ok || stamp.Unit.Value == nil {
		return 0, false, nil
	}
	at = value.Int64() / max(1, int64(time.Millisecond/stamp.Unit.Value.Duration()))
	if stamp.IsAdjustedToUTC {
		return at, true, nil
	}
	if r.options.Zone == nil {
		return 0, true, fmt.Errorf("the time %w", errZone)
	}
	t := time.UnixMilli(at).UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), r.options.Zone).UnixMilli(), true, nil
}
