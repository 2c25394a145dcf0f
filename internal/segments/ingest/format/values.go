package format

import (
	"context"
	"fmt"
	"math/big"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// pageIDs holds the ids of a page, one per row. A value that is not a valid id is below 0 or above
// maxID, and the method text returns its original form.
type pageIDs struct {
	as      idType
	values  []int64
	raw     [][]byte // the stored bytes, if the column stores bytes
	present []bool   // nil if no row is null
}

// ids reads the id column of a page.
func (c *columns) ids(page parquet.Page) (pageIDs, error) {
	ids := pageIDs{as: c.as}
	stored := page.Data()
	if dictionary := page.Dictionary(); dictionary != nil {
		words := dictionary.Page().Data()
		table := pageIDs{as: c.as}
		table.take(&words, c.id)
		if err := ids.lookUp(&table, stored.Int32()); err != nil {
			return ids, err
		}
	} else {
		ids.take(&stored, c.id)
	}
	if c.wide {
		ids.narrow()
	}
	n := len(ids.values)
	if page.NumNulls() > 0 {
		n = ids.spread(page, c.id) + int(page.NumNulls())
	}
	return ids, checkLength(n, page)
}

// take converts the stored values.
func (p *pageIDs) take(stored *encoding.Values, column *parquet.Column) {
	switch p.as {
	case signed, unsigned:
		p.values = integers(stored, column, p.as == unsigned)
	case digits:
		p.raw = byteStrings(stored, column)
		p.values = make([]int64, len(p.raw))
		for i, text := range p.raw {
			p.values[i] = -1
			if id, ok := parseID(text); ok {
				p.values[i] = int64(id)
			}
		}
	case decimal:
		p.raw = byteStrings(stored, column)
		p.values = make([]int64, len(p.raw))
		for i, word := range p.raw {
			p.values[i] = bigEndian(word)
		}
	}
}

// narrow keeps only the lower halves of 64-bit integers, see chunk.go.
func (p *pageIDs) narrow() {
	for i, v := range p.values {
		if p.values[i] = int64(uint32(v)); p.as == signed {
			p.values[i] = int64(int32(v))
		}
	}
}

// lookUp takes the values from a dictionary by their indexes.
func (p *pageIDs) lookUp(table *pageIDs, indexes []int32) error {
	for _, index := range indexes {
		if index < 0 || int(index) >= len(table.values) {
			return fmt.Errorf("parquet: dictionary index %d is out of range: the dictionary has %d values",
				index, len(table.values))
		}
		p.values = append(p.values, table.values[index])
		if table.raw != nil {
			p.raw = append(p.raw, table.raw[index])
		}
	}
	return nil
}

// spread moves the values to their rows and returns the number of rows with a value.
func (p *pageIDs) spread(page parquet.Page, column *parquet.Column) (n int) {
	values, raw := p.values, p.raw
	total := page.NumValues()
	p.values, p.present = make([]int64, total), make([]bool, total)
	if raw != nil {
		p.raw = make([][]byte, total)
	}
	for i, level := range page.DefinitionLevels() {
		if int(level) == column.MaxDefinitionLevel() && n < len(values) && i < int(total) {
			if p.values[i], p.present[i] = values[n], true; raw != nil {
				p.raw[i] = raw[n]
			}
			n++
		}
	}
	return n
}

// text returns value i as text.
func (p *pageIDs) text(i int) []byte {
	switch p.as {
	case unsigned:
		return strconv.AppendUint(nil, uint64(p.values[i]), 10)
	case digits:
		return p.raw[i]
	case decimal:
		v := new(big.Int).SetBytes(p.raw[i])
		if len(p.raw[i]) > 0 && p.raw[i][0] >= 0x80 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(p.raw[i]))))
		}
		return v.Append(nil, 10)
	}
	return strconv.AppendInt(nil, p.values[i], 10)
}

// bigEndian converts a number in two's complement; the result is -1 for every number that is not a
// valid id.
func bigEndian(word []byte) int64 {
	v := int64(0)
	for i, b := range word {
		if i == 0 && b >= 0x80 || v > maxID {
			return -1
		}
		v = v<<8 | int64(b)
	}
	if len(word) == 0 {
		return -1
	}
	return v
}

// integers converts the stored values to 64 bits.
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

// readSegments reads the column of names in a row group and returns a code, noSegment or badSegment
// for each row.
func (c *columns) readSegments(ctx context.Context, into *Block, group parquet.RowGroup, row int64) ([]int16,
	error) {
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
			code, err := into.Code(name)
			if err != nil {
				into.Reject(row+int64(len(codes)), name, err.Error())
				codes = append(codes, badSegment)
				continue
			}
			codes = append(codes, int16(code))
		}
		return nil
	})
	return codes, err
}

// names returns the names in a page, one per row; nil stands for null.
func (c *columns) names(page parquet.Page) ([][]byte, error) {
	stored := page.Data()
	var found [][]byte
	if dictionary := page.Dictionary(); dictionary != nil {
		words := dictionary.Page().Data()
		table := byteStrings(&words, c.segment)
		for _, index := range stored.Int32() {
			if index < 0 || int(index) >= len(table) {
				return nil, fmt.Errorf("parquet: dictionary index %d is out of range: the dictionary has %d values",
					index, len(table))
			}
			found = append(found, table[index])
		}
	} else {
		found = byteStrings(&stored, c.segment)
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

// byteStrings splits the stored strings; none of the results is nil.
func byteStrings(stored *encoding.Values, column *parquet.Column) [][]byte {
	var list [][]byte
	if column.Type().Kind() == parquet.FixedLenByteArray {
		data, size := stored.FixedLenByteArray()
		for i := 0; size > 0 && i+size <= len(data); i += size {
			list = append(list, data[i:i+size:i+size])
		}
		return list
	}
	data, offsets := stored.ByteArray()
	for i := range max(len(offsets), 1) - 1 {
		list = append(list, data[offsets[i]:offsets[i+1]:offsets[i+1]])
	}
	return list
}
