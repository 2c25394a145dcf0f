package format

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// A pageIDs contains the ids in one page of a Parquet file, one per row. A value below 0 or above maxID is not a valid
// id. For an invalid id, the method "text" returns the original text.
type pageIDs struct {
	as      idType
	values  []int64
	raw     [][]byte // the stored bytes, if the column stores bytes
	present []bool   // nil if no row is null
}

// The method "ids" returns the ids in one page of the Parquet column of user ids.
func (g *rowGroup) ids(page parquet.Page, as idType) (pageIDs, error) {
	column := g.leaves[0]
	ids := pageIDs{as: as}
	stored := storedIn(page)
	ids.take(&stored, column)
	var err error
	if ids.values, err = lookUp(page, ids.values); err != nil {
		return ids, err
	}
	if ids.raw != nil {
		ids.raw, _ = lookUp(page, ids.raw) // has as many entries as the values
	}
	if g.wide[0] {
		ids.narrow()
	}
	n := len(ids.values)
	if page.NumNulls() > 0 {
		ids.present, _ = spread(slices.Repeat([]bool{true}, n), page, column)
		if ids.raw != nil {
			ids.raw, _ = spread(ids.raw, page, column)
		}
		ids.values, n = spread(ids.values, page, column)
	}
	return ids, checkLength(n, page)
}

// storedIn returns the stored values of a Parquet page: the values in the page's dictionary or, without a dictionary,
// the values in the page.
func storedIn(page parquet.Page) encoding.Values {
	if dictionary := page.Dictionary(); dictionary != nil {
		return dictionary.Page().Data()
	}
	return page.Data()
}

// The method "take" converts the stored values of a Parquet column to ids.
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
	case plain, packed:
		p.raw = byteStrings(stored, column)
		p.values = make([]int64, len(p.raw)) // placeholders; lookUp and spread need as many values as raw entries
	case decimal:
		p.raw = byteStrings(stored, column)
		p.values = make([]int64, len(p.raw))
		for i, word := range p.raw {
			p.values[i] = bigEndian(word)
		}
	}
}

// The method "narrow" keeps the lower 32 bits of 64-bit integers, because the upper bits may be wrong; see the comments
// in chunk.go.
func (p *pageIDs) narrow() {
	for i, v := range p.values {
		if p.values[i] = int64(uint32(v)); p.as == signed {
			p.values[i] = int64(int32(v))
		}
	}
}

// lookUp returns the values of a Parquet page. The argument "stored" of lookUp contains the values in the page's
// dictionary or, without a dictionary, the values in the page.
func lookUp[T any](page parquet.Page, stored []T) ([]T, error) {
	if page.Dictionary() == nil {
		return stored, nil
	}
	data := page.Data()
	indexes := data.Int32()
	found := make([]T, len(indexes))
	for i, index := range indexes {
		if index < 0 || int(index) >= len(stored) {
			return nil, fmt.Errorf("parquet: dictionary index %d is out of range: the dictionary has %d values",
				index, len(stored))
		}
		found[i] = stored[index]
	}
	return found, nil
}

// The function "spread" returns the values of a Parquet page, one per row. A row with null gets the zero value. The
// result "n" of the function "spread" is the number of rows in the page, including null rows.
func spread[T any](values []T, page parquet.Page, column *parquet.Column) (rows []T, n int) {
	rows = make([]T, page.NumValues())
	for i, level := range page.DefinitionLevels() {
		if int(level) == column.MaxDefinitionLevel() && n < len(values) && i < len(rows) {
			rows[i] = values[n]
			n++
		}
	}
	return rows, n + int(page.NumNulls())
}

// The method "text" returns the value with the index i in a Parquet page as a text.
func (p *pageIDs) text(i int) []byte {
	switch p.as {
	case unsigned:
		return strconv.AppendUint(nil, uint64(p.values[i]), 10)
	case digits, plain:
		return p.raw[i]
	case decimal:
		return decimalText(p.raw[i])
	}
	return strconv.AppendInt(nil, p.values[i], 10)
}

// decimalText returns a decimal number as a text. The argument is the number as big-endian bytes in two's complement.
func decimalText(word []byte) []byte {
	v := new(big.Int).SetBytes(word)
	if len(word) > 0 && word[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(word))))
	}
	return v.Append(nil, 10)
}

// bigEndian converts a number to an id. The argument is the number as big-endian bytes in two's complement. If the
// number is not a valid id, the result is -1.
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

// The function "integers" converts the stored values of a Parquet column to 64-bit integers.
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

// The method "codes" reads the Parquet column of segment or set names, and returns one code per row. For a null name,
// the code is noSegment; for a rejected name, the code is badSegment.
func (g *rowGroup) codes(ctx context.Context, into *Block, row int64) ([]int16, error) {
	codes := []int16{}
	err := g.eachPage(ctx, 1, func(page parquet.Page) error {
		names, err := g.names(page)
		if err != nil {
			return err
		}
		for _, name := range names {
			if name == nil {
				codes = append(codes, noSegment)
				continue
			}
			code, err := into.names.Code(name)
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

// The method "names" returns the segment or set names in a Parquet page, one per row. For a row with null, the name is
// nil.
func (g *rowGroup) names(page parquet.Page) (names [][]byte, err error) {
	column := g.leaves[1]
	stored := storedIn(page)
	if names, err = lookUp(page, byteStrings(&stored, column)); err != nil {
		return nil, err
	}
	n := len(names)
	if page.NumNulls() > 0 {
		names, n = spread(names, page, column)
	}
	return names, checkLength(n, page)
}

// byteStrings splits the stored bytes of a Parquet column into strings. No string in the result is nil.
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
