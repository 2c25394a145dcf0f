package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// readParquet reads the id's column, and for tables the segment's, of all row
// groups, several row groups at once. Other columns are not touched.
func (j *job) readParquet(ctx context.Context, src *source) (err error) {
	defer damaged(&err)
	from, size, err := src.seekable()
	if err != nil {
		return err
	}
	opened, err := parquet.OpenFile(from, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	columns, err := j.parquetColumns(opened)
	if err != nil {
		return err
	}
	if err := columns.checkCodecs(opened); err != nil {
		return err
	}
	groups := opened.RowGroups()
	faults := make([]error, len(groups))
	var pending sync.WaitGroup
	first := int64(1)
	for i, group := range groups {
		row := first
		first += group.NumRows()
		err = j.pool.submit(ctx, &pending, func(w *worker) {
			faults[i] = columns.readGroup(ctx, j, w, group, row)
		})
		if err != nil {
			break
		}
	}
	pending.Wait()
	return errors.Join(append(faults, err, src.stored.unchanged())...)
}

// parquetColumns are the columns of a file that are read.
type parquetColumns struct {
	id       *parquet.Column
	unsigned bool
	segment  *parquet.Column // nil when the file is no table
}

func (j *job) parquetColumns(file *parquet.File) (*parquetColumns, error) {
	id, err := leaf(file, columnOr(j.file.input.IDColumn, "user_id"))
	if err != nil {
		return nil, err
	}
	c := &parquetColumns{id: id}
	if c.unsigned, err = integerType(id); err != nil {
		return nil, err
	}
	if !j.table {
		return c, nil
	}
	if c.segment, err = leaf(file, columnOr(j.file.input.SegmentColumn, "segment")); err != nil {
		return nil, err
	}
	if kind := c.segment.Type().Kind(); kind != parquet.ByteArray {
		return nil, fmt.Errorf("column %q has type %s, segment names must be strings", c.segment.Name(), c.segment.Type())
	}
	return c, nil
}

// leaf finds a column by its name, by the path of names if it is nested, or by its number from 1.
func leaf(file *parquet.File, name string) (*parquet.Column, error) {
	at := file.Root()
	var names []string
	for _, c := range at.Columns() {
		names = append(names, c.Name())
	}
	if n, err := strconv.Atoi(name); err == nil && at.Column(name) == nil {
		if n < 1 || n > len(names) {
			return nil, fmt.Errorf("no column %d: the file has %d", n, len(names))
		}
		name = names[n-1]
	}
	if whole := at.Column(name); whole != nil { // a name may hold dots itself
		at = whole
	} else {
		for step := range strings.SplitSeq(name, ".") {
			if at = at.Column(step); at == nil {
				return nil, fmt.Errorf("no column %q: the file has %q", name, strings.Join(names, ","))
			}
		}
	}
	if !at.Leaf() || at.MaxRepetitionLevel() > 0 {
		return nil, fmt.Errorf("column %q is not a plain column", name)
	}
	return at, nil
}

// integerType refuses every type whose values are not whole numbers as they stand.
func integerType(c *parquet.Column) (unsigned bool, err error) {
	refused := fmt.Errorf("column %q has type %s, user ids must be 32-bit or 64-bit integers", c.Name(), c.Type())
	if kind := c.Type().Kind(); kind != parquet.Int32 && kind != parquet.Int64 {
		return false, refused
	}
	if logical := c.Type().LogicalType(); logical != nil {
		switch t := logical.Value.(type) {
		case *format.IntType:
			return !t.IsSigned, nil
		case *format.DecimalType:
			if t.Scale == 0 {
				return false, nil
			}
		}
		return false, refused
	}
	converted := c.Type().ConvertedType()
	if converted == nil {
		return false, nil
	}
	switch *converted {
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return true, nil
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		return false, nil
	}
	return false, refused
}

// checkCodecs refuses LZ4: the library takes wrong bytes for the page without
// an error, https://github.com/parquet-go/parquet-go/issues/608.
func (c *parquetColumns) checkCodecs(file *parquet.File) error {
	for _, group := range file.Metadata().RowGroups {
		for _, column := range []*parquet.Column{c.id, c.segment} {
			if column == nil {
				continue
			}
			switch codec := group.Columns[column.Index()].MetaData.Codec; codec {
			case format.Lz4, format.Lz4Raw, format.LZO:
				return fmt.Errorf("column %q is compressed with %s, which cannot be read: write it with snappy, gzip, zstd or brotli, or not compressed", column.Name(), codec)
			}
		}
	}
	return nil
}

// batchRows is how many rows go to the sink at a time.
const batchRows = 1 << 16

// Marks of a row whose segment is not usable.
const (
	noSegment  = -1 // null
	badSegment = -2 // rejected already
)

// damaged makes an error of what the library does not expect of a damaged file.
func damaged(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("parquet: damaged: %v", fault)
	}
}

// readGroup reads one row group, whose first row has the given number.
func (c *parquetColumns) readGroup(ctx context.Context, j *job, w *worker, group parquet.RowGroup, row int64) (err error) {
	defer damaged(&err)
	w.begin()
	var codes []int16
	if c.segment != nil {
		if codes, err = c.readSegments(ctx, w, group, row); err != nil {
			return err
		}
	}
	at := 0
	err = eachPage(ctx, group, c.id, func(page parquet.Page) error {
		values, present, err := numbers(page, c.id, c.unsigned)
		if err != nil {
			return err
		}
		for i := range int(page.NumValues()) {
			c.row(w, row+int64(at), values, present, i, codes, at)
			at++
			if len(w.ids) == batchRows {
				w.end(j)
				w.begin()
			}
		}
		return nil
	})
	w.end(j)
	if err == nil && c.segment != nil && at != len(codes) {
		err = fmt.Errorf("parquet: %d ids and %d segments in one row group", at, len(codes))
	}
	return err
}

// row takes value i of a page, the at-th of its row group.
func (c *parquetColumns) row(w *worker, row int64, values []int64, present []bool, i int, codes []int16, at int) {
	code := int16(0)
	if codes != nil {
		if at >= len(codes) || codes[at] == badSegment {
			return
		}
		code = codes[at]
	}
	v := values[i]
	switch {
	case present != nil && !present[i]:
		w.reject(row, []byte("null"), reasonEmpty)
	case v < 0 && c.unsigned:
		w.reject(row, strconv.AppendUint(nil, uint64(v), 10), reasonNotID)
	case v < 0 || v > maxID:
		w.reject(row, strconv.AppendInt(nil, v, 10), reasonNotID)
	case code == noSegment:
		w.reject(row, []byte("null"), reasonNoSegment)
	default:
		w.ids = append(w.ids, uint32(v))
		if codes != nil {
			w.codes = append(w.codes, uint8(code))
		}
	}
}

// eachPage calls do for every page of one column of a row group.
func eachPage(ctx context.Context, group parquet.RowGroup, column *parquet.Column, do func(parquet.Page) error) (err error) {
	pages := group.ColumnChunks()[column.Index()].Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF { // itself alone: wrapped, it is a page that is cut off
			return nil
		}
		if err != nil {
			return fmt.Errorf("parquet: %w", err)
		}
		err = do(page)
		parquet.Release(page)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
}

// numbers returns a page's values, one per row; present is nil when no row is
// null. A uint64 beyond int64 comes as a negative number.
func numbers(page parquet.Page, column *parquet.Column, unsigned bool) (values []int64, present []bool, err error) {
	stored := page.Data()
	if dictionary := page.Dictionary(); dictionary != nil {
		words := dictionary.Page().Data()
		table := integers(&words, column, unsigned)
		for _, index := range stored.Int32() {
			if int(index) >= len(table) || index < 0 {
				return nil, nil, fmt.Errorf("parquet: dictionary index %d of %d", index, len(table))
			}
			values = append(values, table[index])
		}
	} else {
		values = integers(&stored, column, unsigned)
	}
	if page.NumNulls() == 0 {
		return values, nil, checkLength(len(values), page)
	}
	spread := make([]int64, page.NumValues())
	present = make([]bool, page.NumValues())
	n := 0
	for i, level := range page.DefinitionLevels() {
		if int(level) == column.MaxDefinitionLevel() && n < len(values) {
			spread[i], present[i] = values[n], true
			n++
		}
	}
	return spread, present, checkLength(n+int(page.NumNulls()), page)
}

func checkLength(n int, page parquet.Page) error {
	if n != int(page.NumValues()) {
		return fmt.Errorf("parquet: %d values in a page of %d", n, page.NumValues())
	}
	return nil
}
