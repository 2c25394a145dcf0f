package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/parquet-go/parquet-go"
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
	if err := errors.Join(columns.checkCodecs(opened), checkRowCounts(opened)); err != nil {
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
			faults[i] = columns.readGroup(ctx, j, w, from, opened, i, row)
		})
		if err != nil {
			break
		}
	}
	pending.Wait()
	return errors.Join(append(faults, err, src.stored.unchanged())...)
}

// checkCodecs refuses the codecs that are not what they seem: writers disagree
// about the bytes of LZ4, which LZ4_RAW replaces.
func (c *parquetColumns) checkCodecs(file *parquet.File) error {
	for _, group := range file.Metadata().RowGroups {
		for _, column := range c.list() {
			switch codec := group.Columns[column.Index()].MetaData.Codec; codec {
			case format.Lz4, format.LZO:
				return fmt.Errorf("column %q is compressed with %s, which cannot be read: write it with snappy, gzip, zstd, brotli or LZ4_RAW, or not compressed", column.Name(), codec)
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
func (c *parquetColumns) readGroup(ctx context.Context, j *job, w *worker, from io.ReaderAt, file *parquet.File, i int, row int64) (err error) {
	defer damaged(&err)
	group, c, err := c.group(from, file, i)
	if err != nil {
		return err
	}
	w.begin()
	var codes []int16
	if c.segment != nil {
		if codes, err = c.readSegments(ctx, w, group, row); err != nil {
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
			c.row(w, row+int64(at), ids, i, codes, at)
			at++
			if len(w.ids) == batchRows {
				w.end(j)
				w.begin()
			}
		}
		return nil
	})
	w.end(j)
	if err != nil {
		return err
	}
	if int64(at) != group.NumRows() || c.segment != nil && len(codes) != at {
		return fmt.Errorf("parquet: damaged: %d ids and %d segments in a row group of %d rows", at, len(codes), group.NumRows())
	}
	return nil
}

// checkRowCounts compares the footer's own counts, of the file, of its row
// groups and of their columns. What is read is compared with them group by group.
func checkRowCounts(file *parquet.File) error {
	total := int64(0)
	for i, group := range file.Metadata().RowGroups {
		for _, column := range group.Columns {
			path := column.MetaData.PathInSchema
			if values := column.MetaData.NumValues; len(path) == 1 && values != group.NumRows {
				if leaf := file.Root().Column(path[0]); leaf != nil && leaf.Leaf() && leaf.MaxRepetitionLevel() == 0 {
					return fmt.Errorf("parquet: damaged: %d values of column %q in row group %d of %d rows", values, path[0], i, group.NumRows)
				}
			}
		}
		if group.NumRows < 0 {
			return fmt.Errorf("parquet: damaged: row group %d of %d rows", i, group.NumRows)
		}
		total += group.NumRows
	}
	if total != file.NumRows() {
		return fmt.Errorf("parquet: damaged: %d rows in its row groups, %d in the file", total, file.NumRows())
	}
	return nil
}

// row takes value i of a page, the at-th of its row group.
func (c *parquetColumns) row(w *worker, row int64, ids pageIDs, i int, codes []int16, at int) {
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
		w.reject(row, []byte("null"), reasonEmpty)
	case v < 0 || v > maxID:
		text := ids.text(i)
		w.reject(row, text, whyNotID(text))
	case code == noSegment:
		w.reject(row, []byte("null"), "no segment")
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

func checkLength(n int, page parquet.Page) error {
	if n != int(page.NumValues()) {
		return fmt.Errorf("parquet: %d values in a page of %d", n, page.NumValues())
	}
	return nil
}
