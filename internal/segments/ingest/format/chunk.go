package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// Package format rewrites two kinds of columns before the Parquet library reads them:
//   - Package format decompresses LZ4_RAW columns, because the library may return wrong data without an error
//     (https://github.com/parquet-go/parquet-go/issues/608).
//   - The Parquet library reads delta-encoded 32-bit integers as 64-bit integers. DuckDB stores the true differences,
//     which have up to 33 bits; other writers store the differences modulo 2^32. As 64-bit integers, both forms have
//     the right value in their lower half.

// packedByDeltas reports whether all pages of a Parquet column chunk with 32-bit integers use delta encoding.
func packedByDeltas(chunk *format.ColumnMetaData) bool {
	levels := []format.Encoding{format.RLE, format.BitPacked}
	return chunk.Type == format.Int32 && slices.Contains(chunk.Encoding, format.DeltaBinaryPacked) &&
		!slices.ContainsFunc(chunk.Encoding, func(e format.Encoding) bool {
			return e != format.DeltaBinaryPacked && !slices.Contains(levels, e)
		})
}

// A parquetFile contains an open Parquet file and the list of the columns that the parser reads.
type parquetFile struct {
	from   io.ReaderAt
	opened *parquet.File
	leaves []*parquet.Column
}

// A rowGroup is a row group of a Parquet file in a form that the Parquet library reads correctly.
type rowGroup struct {
	parquet.RowGroup
	leaves []*parquet.Column // columns that the parser reads
	wide   []bool            // for each column: true if the parser reads 32-bit integers as 64-bit integers
}

// The method "group" returns the Parquet row group with the index i. If the Parquet library could misread the row
// group, the method "group" rewrites the row group first.
func (f *parquetFile) group(i int) (*rowGroup, error) {
	chunks := f.opened.Metadata().RowGroups[i].Columns
	g := &rowGroup{RowGroup: f.opened.RowGroups()[i], leaves: f.leaves}
	rewrite := false
	for _, column := range f.leaves {
		chunk := &chunks[column.Index()].MetaData
		g.wide = append(g.wide, packedByDeltas(chunk))
		rewrite = rewrite || packedByDeltas(chunk) || chunk.Codec == format.Lz4Raw
	}
	if !rewrite {
		return g, nil
	}
	content, err := f.rewrite(i, g.wide)
	if err != nil {
		return nil, err
	}
	opened, err := openParquet(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	all := leavesOf(opened.Root())
	g.RowGroup, g.leaves = opened.RowGroups()[0], nil
	for _, column := range f.leaves {
		g.leaves = append(g.leaves, all[column.Index()])
	}
	return g, nil
}

// leavesOf returns the columns without children below a Parquet column, in the order of their indexes.
func leavesOf(c *parquet.Column) []*parquet.Column {
	if c.Leaf() {
		return []*parquet.Column{c}
	}
	var leaves []*parquet.Column
	for _, inner := range c.Columns() {
		leaves = append(leaves, leavesOf(inner)...)
	}
	return leaves
}

// The method "rewrite" returns a new Parquet file with one row group and the pages of the columns that the parser
// reads.
func (f *parquetFile) rewrite(i int, wide []bool) ([]byte, error) {
	footer := *f.opened.Metadata()
	footer.Schema = slices.Clone(footer.Schema)
	group := footer.RowGroups[i]
	group.Columns, group.Ordinal = slices.Clone(group.Columns), 0
	content := []byte("PAR1")
	for k, column := range f.leaves {
		if slices.Contains(f.leaves[:k], column) {
			continue // the parser may read one column for two purposes
		}
		chunk := &group.Columns[column.Index()].MetaData
		var err error
		if content, err = appendChunk(content, f.from, f.opened.Size(), chunk); err != nil {
			return nil, fmt.Errorf("parquet: column %q: %w", column.Name(), err)
		}
		if wide[k] {
			element := &footer.Schema[schemaIndex(f.opened.Root(), column)]
			element.Type.Set(format.Int64)
			element.ConvertedType.Reset()
			element.LogicalType = format.LogicalType{}
			chunk.Type = format.Int64
		}
	}
	footer.NumRows, footer.RowGroups, footer.KeyValueMetadata = group.NumRows, []format.RowGroup{group}, nil
	encoded, err := thrift.Marshal(new(thrift.CompactProtocol), &footer)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	content = append(content, encoded...)
	return append(binary.LittleEndian.AppendUint32(content, uint32(len(encoded))), "PAR1"...), nil
}

// schemaIndex returns the position of a column without children in the Parquet schema, whose elements are in
// depth-first order.
func schemaIndex(root, wanted *parquet.Column) int {
	at, found := 0, 0
	var visit func(c *parquet.Column)
	visit = func(c *parquet.Column) {
		if c == wanted {
			found = at
		}
		at++
		for _, inner := range c.Columns() {
			visit(inner)
		}
	}
	visit(root)
	return found
}

var errPages = errors.New("file is damaged: its Parquet pages are at other positions than the footer says")

// appendChunk appends the pages of a Parquet column chunk to content. appendChunk decompresses LZ4_RAW pages, and
// updates the metadata of the chunk accordingly.
func appendChunk(content []byte, from io.ReaderAt, size int64, chunk *format.ColumnMetaData) ([]byte, error) {
	start := chunk.DataPageOffset
	if d := chunk.DictionaryPageOffset; d > 0 && d < start {
		start = d
	}
	if start < 0 || chunk.TotalCompressedSize < 0 || start > size-chunk.TotalCompressedSize {
		return nil, errPages
	}
	pages := make([]byte, chunk.TotalCompressedSize)
	if _, err := from.ReadAt(pages, start); err != nil && err != io.EOF {
		return nil, err
	}
	begin := len(content)
	chunk.DictionaryPageOffset, chunk.DataPageOffset = 0, 0
	for len(pages) > 0 {
		page, used, err := onePage(pages, chunk.Codec == format.Lz4Raw)
		if err != nil {
			return nil, err
		}
		pages = pages[used:]
		switch offset := int64(len(content)); {
		case page.header.Type == format.DictionaryPage:
			chunk.DictionaryPageOffset = offset
		case chunk.DataPageOffset == 0:
			chunk.DataPageOffset = offset
		}
		encoded, err := thrift.Marshal(new(thrift.CompactProtocol), &page.header)
		if err != nil {
			return nil, err
		}
		content = append(append(content, encoded...), page.body...)
	}
	chunk.TotalCompressedSize = int64(len(content) - begin)
	if chunk.Codec == format.Lz4Raw {
		chunk.Codec, chunk.TotalUncompressedSize = format.Uncompressed, chunk.TotalCompressedSize
	}
	return content, nil
}

// A rawPage is a page of a Parquet file in its stored form, which may be compressed.
type rawPage struct {
	header format.PageHeader
	body   []byte
}

// onePage parses the first Parquet page in a byte slice. onePage returns the page and its length in bytes.
func onePage(pages []byte, packed bool) (p rawPage, used int, err error) {
	reader := new(thrift.CompactProtocol).NewReaderFromBytes(slices.Clone(pages[:min(len(pages), 1<<16)]))
	if err := thrift.NewDecoder(reader).Decode(&p.header); err != nil {
		return p, 0, fmt.Errorf("file is damaged: decode the header of a Parquet page: %w", err)
	}
	body, n := pages[reader.BytesRead():], int(p.header.CompressedPageSize)
	if n < 0 || n > len(body) {
		return p, 0, errPages
	}
	p.body = body[:n]
	if sum := crc32.ChecksumIEEE(p.body); p.header.CRC != 0 && uint32(p.header.CRC) != sum {
		return p, 0, fmt.Errorf("file is damaged: the CRC of a Parquet page must be %08x, got %08x",
			uint32(p.header.CRC), sum)
	}
	if packed {
		err = p.unpack()
	}
	return p, reader.BytesRead() + n, err
}

// The method "unpack" decompresses a Parquet page. In a data page of version 2, the repetition and definition levels
// are never compressed.
func (p *rawPage) unpack() error {
	plain := 0
	if v2, ok := p.header.DataPageHeaderV2.Get(); ok {
		if compressed, said := v2.IsCompressed.Get(); said && !compressed {
			return nil
		}
		plain = int(v2.DefinitionLevelsByteLength) + int(v2.RepetitionLevelsByteLength)
		v2.IsCompressed.Set(false)
		p.header.DataPageHeaderV2.Set(v2)
	}
	size := int(p.header.UncompressedPageSize)
	if plain < 0 || plain > len(p.body) || size < plain || size > 256*len(p.body)+256 { // limit of LZ4: 1:255
		return errPages
	}
	unpacked := make([]byte, size)
	copy(unpacked, p.body[:plain])
	if len(p.body) > plain {
		n, err := lz4.UncompressBlock(p.body[plain:], unpacked[plain:])
		if err != nil || n != size-plain {
			return fmt.Errorf("file is damaged: an LZ4_RAW page has %d bytes instead of %d", plain+n, size)
		}
	}
	p.body, p.header.CompressedPageSize, p.header.CRC = unpacked, int32(size), 0
	return nil
}
