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

// The package converts two kinds of columns before the library reads them:
//   - LZ4_RAW is decompressed here, because the library may return wrong data without an error
//     (https://github.com/parquet-go/parquet-go/issues/608).
//   - Delta-encoded 32-bit integers are read as 64-bit integers. DuckDB stores the true differences,
//     which have up to 33 bits; other writers store them modulo 2^32. As 64-bit integers, both have the
//     right value in their lower half.

// packedByDeltas reports whether all pages of a column chunk of 32-bit integers use delta encoding.
func packedByDeltas(chunk *format.ColumnMetaData) bool {
	levels := []format.Encoding{format.RLE, format.BitPacked}
	return chunk.Type == format.Int32 && slices.Contains(chunk.Encoding, format.DeltaBinaryPacked) &&
		!slices.ContainsFunc(chunk.Encoding, func(e format.Encoding) bool {
			return e != format.DeltaBinaryPacked && !slices.Contains(levels, e)
		})
}

// readable returns row group i in a form that the library reads correctly, and its columns.
func (f *Parquet) readable(i int) (parquet.RowGroup, *columns, error) {
	c, file := &f.columns, f.opened
	chunks := file.Metadata().RowGroups[i].Columns
	wide := packedByDeltas(&chunks[c.id.Index()].MetaData)
	raw := false
	for _, column := range c.list() {
		raw = raw || chunks[column.Index()].MetaData.Codec == format.Lz4Raw
	}
	if !wide && !raw {
		return file.RowGroups()[i], c, nil
	}
	content, err := c.rewrite(f.from, file, i, wide)
	if err != nil {
		return nil, nil, err
	}
	again, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)), parquet.SkipPageIndex(true),
		parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, nil, fmt.Errorf("parquet: %w", err)
	}
	same := *c
	same.wide = wide
	leaves := leavesOf(again.Root())
	if same.id = leaves[c.id.Index()]; c.segment != nil {
		same.segment = leaves[c.segment.Index()]
	}
	return again.RowGroups()[0], &same, nil
}

// leavesOf returns the leaf columns below a column by their index.
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

// list returns the columns that are read.
func (c *columns) list() []*parquet.Column {
	if c.segment == nil {
		return []*parquet.Column{c.id}
	}
	return []*parquet.Column{c.id, c.segment}
}

// rewrite returns a new Parquet file with only one row group and only the columns that are read.
func (c *columns) rewrite(from io.ReaderAt, file *parquet.File, i int, wide bool) ([]byte, error) {
	group := file.Metadata().RowGroups[i]
	group.Columns, group.Ordinal = slices.Clone(group.Columns), 0
	content := []byte("PAR1")
	for _, column := range c.list() {
		chunk := &group.Columns[column.Index()]
		var err error
		if content, err = appendChunk(content, from, file.Size(), &chunk.MetaData); err != nil {
			return nil, fmt.Errorf("parquet: column %q: %w", column.Name(), err)
		}
	}
	footer := *file.Metadata()
	footer.NumRows, footer.RowGroups, footer.KeyValueMetadata = group.NumRows, []format.RowGroup{group}, nil
	if wide {
		footer.Schema = slices.Clone(footer.Schema)
		element := &footer.Schema[schemaIndex(file.Root(), c.id)]
		element.Type.Set(format.Int64)
		element.ConvertedType.Reset()
		element.LogicalType = format.LogicalType{}
		group.Columns[c.id.Index()].MetaData.Type = format.Int64
	}
	encoded, err := thrift.Marshal(new(thrift.CompactProtocol), &footer)
	if err != nil {
		return nil, fmt.Errorf("parquet: %w", err)
	}
	content = append(content, encoded...)
	return append(binary.LittleEndian.AppendUint32(content, uint32(len(encoded))), "PAR1"...), nil
}

// schemaIndex returns the position of a leaf column in the depth-first list of the schema's elements.
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

var errPages = errors.New("file is damaged: its pages are not where the footer says")

// appendChunk appends the pages of a column chunk to content, with LZ4_RAW pages decompressed. It
// updates the chunk's description accordingly.
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

// rawPage is a page in its stored form.
type rawPage struct {
	header format.PageHeader
	body   []byte
}

// onePage parses the first of the pages and returns the number of bytes that it occupies.
func onePage(pages []byte, packed bool) (p rawPage, used int, err error) {
	reader := new(thrift.CompactProtocol).NewReaderFromBytes(slices.Clone(pages[:min(len(pages), 1<<16)]))
	if err := thrift.NewDecoder(reader).Decode(&p.header); err != nil {
		return p, 0, fmt.Errorf("file is damaged: decode page header: %w", err)
	}
	body, n := pages[reader.BytesRead():], int(p.header.CompressedPageSize)
	if n < 0 || n > len(body) {
		return p, 0, errPages
	}
	p.body = body[:n]
	if sum := crc32.ChecksumIEEE(p.body); p.header.CRC != 0 && uint32(p.header.CRC) != sum {
		return p, 0, fmt.Errorf("file is damaged: the CRC of a page is %08x and should be %08x",
			sum, uint32(p.header.CRC))
	}
	if packed {
		err = p.unpack()
	}
	return p, reader.BytesRead() + n, err
}

// unpack decompresses a page. In a page of version 2, the levels are never compressed.
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
