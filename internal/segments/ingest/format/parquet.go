package format

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// ParquetOptions says which columns of a Parquet file are read.
type ParquetOptions struct {
	// IDColumn and SegmentColumn are names, or numbers from 1. Empty means that the column is
	// detected.
	IDColumn, SegmentColumn string
	// Table means that every row also has the name of a segment or set.
	Table bool
}

// Parquet is a Parquet file whose footer has been checked. It is safe for concurrent use.
type Parquet struct {
	from   io.ReaderAt
	opened *parquet.File
	columns
}

// OpenParquet reads the footer of a file of size bytes and finds the columns.
func OpenParquet(from io.ReaderAt, size int64, o ParquetOptions) (f *Parquet, err error) {
	defer damaged(&err)
	opened, err := parquet.OpenFile(from, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	c, err := o.columns(opened)
	if err != nil {
		return nil, err
	}
	return &Parquet{from: from, opened: opened, columns: *c}, errors.Join(c.checkCodecs(opened), checkRowCounts(opened))
}

// Column returns the name of the id column.
func (f *Parquet) Column() string { return strings.Join(f.id.Path(), ".") }

// NameColumn returns the column of the names in a table, or "" if the file is not a table.
func (f *Parquet) NameColumn() string {
	if f.segment == nil {
		return ""
	}
	return strings.Join(f.segment.Path(), ".")
}

// Groups returns the number of row groups.
func (f *Parquet) Groups() int { return len(f.opened.RowGroups()) }

// checkCodecs rejects ambiguous compression codecs: writers disagree about the format of LZ4, which
// LZ4_RAW has replaced.
func (c *columns) checkCodecs(file *parquet.File) error {
	for _, group := range file.Metadata().RowGroups {
		for _, column := range c.list() {
			switch codec := group.Columns[column.Index()].MetaData.Codec; codec {
			case format.Lz4, format.LZO:
				return fmt.Errorf(
					"column %q uses the compression %s, which is not supported: "+
						"write the file with snappy, gzip, zstd, brotli or LZ4_RAW, or without compression",
					column.Name(), codec)
			}
		}
	}
	return nil
}

// blockRows is the maximum number of rows in a block.
const blockRows = 1 << 16

// The values that stand for a row without a usable segment.
const (
	noSegment  = -1 // null
	badSegment = -2 // rejected already
)

// damaged converts a panic of the library, which a damaged file can cause, into an error.
func damaged(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("parquet: damaged: %v", fault)
	}
}

// ReadGroup reads one row group into a block. Whenever the block is full, and at the end, it calls
// full, which processes and empties the block. Several goroutines may read groups at once, each with
// its own block.
func (f *Parquet) ReadGroup(ctx context.Context, i int, into *Block, full func()) (err error) {
	defer damaged(&err)
	group, c, err := f.readable(i)
	if err != nil {
		return err
	}
	row := int64(1)
	for _, before := range f.opened.RowGroups()[:i] {
		row += before.NumRows()
	}
	var codes []int16
	if c.segment != nil {
		if codes, err = c.readSegments(ctx, into, group, row); err != nil {
			return err
		}
	}
	at := 0
	err = eachPage(ctx, group, c.id, func(page parquet.Page) error {
		ids, err := c.ids(page)
		if err != nil {
			return err
		}
		for i := range int(page.NumValues()) {
			c.takeRow(into, row+int64(at), ids, i, codes, at)
			at++
			if len(into.IDs) == blockRows {
				full()
			}
		}
		return nil
	})
	full()
	if err != nil {
		return err
	}
	if int64(at) != group.NumRows() || c.segment != nil && len(codes) != at {
		return fmt.Errorf("parquet: file is damaged: %d ids and %d segments in a row group of %d rows", at, len(codes),
			group.NumRows())
	}
	return nil
}

// checkRowCounts compares the row counts in the footer with each other: those of the file, its row
// groups and their columns. Reading later compares the counts with the actual rows of each group.
func checkRowCounts(file *parquet.File) error {
	total := int64(0)
	for i, group := range file.Metadata().RowGroups {
		for _, column := range group.Columns {
			path := column.MetaData.PathInSchema
			if values := column.MetaData.NumValues; len(path) == 1 && values != group.NumRows {
				if leaf := file.Root().Column(path[0]); leaf != nil && leaf.Leaf() && leaf.MaxRepetitionLevel() == 0 {
					return fmt.Errorf("parquet: file is damaged: %d values of column %q in row group %d of %d rows",
						values,
						path[0], i, group.NumRows)
				}
			}
		}
		if group.NumRows < 0 {
			return fmt.Errorf("parquet: file is damaged: row group %d has %d rows", i, group.NumRows)
		}
		total += group.NumRows
	}
	if total != file.NumRows() {
		return fmt.Errorf("parquet: file is damaged: row groups have %d rows, but the footer says %d",
			total, file.NumRows())
	}
	return nil
}

// takeRow adds value i of a page to the block; at is the index of its row in the row group.
func (c *columns) takeRow(into *Block, row int64, ids pageIDs, i int, codes []int16, at int) {
	code := int16(0)
	if codes != nil {
		if at >= len(codes) || codes[at] == badSegment {
			return
		}
		code = codes[at]
	}
	v := ids.values[i]
	switch {
	case ids.present != nil && !ids.present[i]:
		into.Reject(row, []byte("null"), reasonEmpty)
	case v < 0 || v > maxID:
		text := ids.text(i)
		into.Reject(row, text, whyNotID(text))
	case code == noSegment:
		into.Reject(row, []byte("null"), reasonNoSegment)
	default:
		into.IDs = append(into.IDs, uint32(v))
		if codes != nil {
			into.Codes = append(into.Codes, uint16(code))
		}
	}
}

// eachPage calls do for each page of one column of a row group.
func eachPage(ctx context.Context, group parquet.RowGroup, column *parquet.Column, do func(parquet.Page) error) (
	err error) {
	pages := group.ColumnChunks()[column.Index()].Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	for {
		page, err := pages.ReadPage()
		if err == io.EOF { // a wrapped io.EOF means a truncated page
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

func checkLength(n int, page parquet.Page) error {
	if n != int(page.NumValues()) {
		return fmt.Errorf("parquet: a page has %d values but declares %d", n, page.NumValues())
	}
	return nil
}
