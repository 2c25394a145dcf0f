package format

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"capper/internal/ids"
)

// The type Parquet is an open Parquet file of user ids with a checked footer. A Parquet is safe for concurrent use.
type Parquet struct {
	parquetFile // the column of the ids and, in a table, the column of the names
	as          idType
	kind        ids.Kind
}

// openParquet reads the footer of a Parquet file. The argument "size" of openParquet is the length of the file in
// bytes.
func openParquet(from io.ReaderAt, size int64) (*parquet.File, error) {
	opened, err := parquet.OpenFile(from, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	return opened, nil
}

// OpenParquet reads the footer of a Parquet file and finds the columns. The argument "size" of OpenParquet is the
// length of the file in bytes. The argument "id" of OpenParquet names the column of the user ids, and the argument
// "segment" names the column of the segment names. Each of the arguments "id" and "segment" is the name of a column or
// its number, counted from 1. If "id" or "segment" is empty, OpenParquet finds the column by the usual names of such
// columns. If the argument "table" is true, every row also has the name of a segment or set.
func OpenParquet(from io.ReaderAt, size int64, id, segment string, table bool, kind ids.Kind) (f *Parquet, err error) {
	defer damaged(&err)
	opened, err := openParquet(from, size)
	if err != nil {
		return nil, err
	}
	f = &Parquet{parquetFile: parquetFile{from: from, opened: opened}, kind: kind}
	if err := f.find(id, segment, table); err != nil {
		return nil, err
	}
	return f, f.check()
}

// Column returns the name of the id column.
func (f *Parquet) Column() string { return strings.Join(f.leaves[0].Path(), ".") }

// NameColumn returns the name of the column with segment or set names. If rows name no segment or set, NameColumn
// returns "".
func (f *Parquet) NameColumn() string {
	if len(f.leaves) == 1 {
		return ""
	}
	return strings.Join(f.leaves[1].Path(), ".")
}

// Groups returns the number of row groups in the Parquet file.
func (f *Parquet) Groups() int { return len(f.opened.RowGroups()) }

// The method "check" returns an error if the Parquet file has ambiguous compression codecs, or a footer with
// contradictory row counts.
func (f *parquetFile) check() error { return errors.Join(f.checkCodecs(), checkRowCounts(f.opened)) }

// checkCodecs rejects compression codecs that are ambiguous: programs disagree about the format of LZ4, which LZ4_RAW
// has replaced.
func (f *parquetFile) checkCodecs() error {
	for _, group := range f.opened.Metadata().RowGroups {
		for _, column := range f.leaves {
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

// blockRows is the number of rows in a full block that ReadGroup passes to its caller.
const blockRows = 1 << 16

// noSegment replaces a segment's code in a row whose segment name is null, and badSegment in a row whose segment name
// was rejected.
const (
	noSegment  = -1 // null
	badSegment = -2 // rejected already
)

// The function "damaged" converts a panic into an error, because a damaged Parquet file can cause a panic of the
// Parquet library.
func damaged(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("parquet: damaged: %v", fault)
	}
}

// ReadGroup reads the rows of one Parquet row group into a block. When the block is full, and at the end of the row
// group, ReadGroup calls the function "full". The function "full" processes and empties the block. Several goroutines
// may read row groups concurrently, each with its own block.
func (f *Parquet) ReadGroup(ctx context.Context, i int, into *Block, full func()) (err error) {
	defer damaged(&err)
	group, err := f.group(i)
	if err != nil {
		return err
	}
	row := int64(1)
	for _, before := range f.opened.RowGroups()[:i] {
		row += before.NumRows()
	}
	var codes []int16
	if len(group.leaves) > 1 {
		if codes, err = group.codes(ctx, into, row); err != nil {
			return err
		}
	}
	at := 0
	err = group.eachPage(ctx, 0, func(page parquet.Page) error {
		ids, err := group.ids(page, f.as)
		if err != nil {
			return err
		}
		for i := range int(page.NumValues()) {
			takeRow(into, row+int64(at), ids, i, codes, at)
			at++
			if into.Rows() == blockRows {
				full()
			}
		}
		return nil
	})
	full()
	if err != nil {
		return err
	}
	if int64(at) != group.NumRows() || codes != nil && len(codes) != at {
		return fmt.Errorf("parquet: file is damaged: a row group has %d ids, %d segments and %d rows", at, len(codes),
			group.NumRows())
	}
	return nil
}

// checkRowCounts compares the row counts in the footer of a Parquet file: for the file, the row groups and the columns.
// Later, ReadGroup compares the row count of each group with the actual rows.
func checkRowCounts(file *parquet.File) error {
	total := int64(0)
	for i, group := range file.Metadata().RowGroups {
		for _, column := range group.Columns {
			path := column.MetaData.PathInSchema
			if values := column.MetaData.NumValues; len(path) == 1 && values != group.NumRows {
				if leaf := file.Root().Column(path[0]); leaf != nil && leaf.Leaf() && leaf.MaxRepetitionLevel() == 0 {
					return fmt.Errorf(
						"parquet: file is damaged: %d values are in column %q of row group %d, which has %d rows",
						values,
						path[0], i, group.NumRows)
				}
			}
		}
		if group.NumRows < 0 {
			return fmt.Errorf("parquet: file is damaged: row group %d has a negative number of rows, %d",
				i, group.NumRows)
		}
		total += group.NumRows
	}
	if total != file.NumRows() {
		return fmt.Errorf("parquet: file is damaged: row groups have %d rows, but the footer says %d",
			total, file.NumRows())
	}
	return nil
}

// takeRow adds the id with the index i in a Parquet page to the block. The argument "at" of takeRow is the index of the
// row in the row group.
func takeRow(into *Block, row int64, ids pageIDs, i int, codes []int16, at int) {
	code := int16(0)
	if codes != nil {
		if at >= len(codes) || codes[at] == badSegment {
			return
		}
		code = codes[at]
	}
	if into.parser != nil {
		ids.takeOther(into, row, i, code, codes != nil)
		return
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

// eachPage calls the function "do" for each page of one column of a Parquet row group.
func (g *rowGroup) eachPage(ctx context.Context, column int, do func(parquet.Page) error) (err error) {
	pages := g.ColumnChunks()[g.leaves[column].Index()].Pages()
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
		return fmt.Errorf("parquet: file is damaged: a page has %d values, but its header says %d", n, page.NumValues())
	}
	return nil
}
