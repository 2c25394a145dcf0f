package ingest

import (
	"context"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// integers widens stored values to 64 bits.
func integers(stored *encoding.Values, column *parquet.Column, unsigned bool) []int64 {
	if column.Type().Kind() == parquet.Int64 {
		return stored.Int64()
	}
	narrow := stored.Int32()
	wide := make([]int64, len(narrow))
	for i, v := range narrow {
		if wide[i] = int64(v); unsigned {
			wide[i] = int64(uint32(v))
		}
	}
	return wide
}

// readSegments reads the segment's column of a row group: a code, noSegment or
// badSegment for each row.
func (c *parquetColumns) readSegments(ctx context.Context, w *worker, group parquet.RowGroup, row int64) ([]int16, error) {
	var codes []int16
	err := eachPage(ctx, group, c.segment, func(page parquet.Page) error {
		names, err := c.names(page)
		if err != nil {
			return err
		}
		for _, name := range names {
			if name == nil {
				codes = append(codes, noSegment)
				continue
			}
			code, err := w.sink.code(name)
			if err != nil {
				w.reject(row+int64(len(codes)), name, err.Error())
				codes = append(codes, badSegment)
				continue
			}
			codes = append(codes, int16(code))
		}
		return nil
	})
	return codes, err
}

// names returns a page's segment names, one per row, nil where it is null.
func (c *parquetColumns) names(page parquet.Page) ([][]byte, error) {
	stored := page.Data()
	var found [][]byte
	if dictionary := page.Dictionary(); dictionary != nil {
		words := dictionary.Page().Data()
		table := byteStrings(&words)
		for _, index := range stored.Int32() {
			if index < 0 || int(index) >= len(table) {
				return nil, fmt.Errorf("parquet: dictionary index %d of %d", index, len(table))
			}
			found = append(found, table[index])
		}
	} else {
		found = byteStrings(&stored)
	}
	if page.NumNulls() == 0 {
		return found, checkLength(len(found), page)
	}
	spread := make([][]byte, page.NumValues())
	n := 0
	for i, level := range page.DefinitionLevels() {
		if int(level) == c.segment.MaxDefinitionLevel() && n < len(found) {
			spread[i] = found[n]
			n++
		}
	}
	return spread, checkLength(n+int(page.NumNulls()), page)
}

// byteStrings splits stored strings; none of them is nil.
func byteStrings(stored *encoding.Values) [][]byte {
	data, offsets := stored.ByteArray()
	var list [][]byte
	for i := range max(len(offsets), 1) - 1 {
		list = append(list, data[offsets[i]:offsets[i+1]:offsets[i+1]])
	}
	return list
}
