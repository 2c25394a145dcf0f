package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"capper/internal/ids"
)

// The type idType is the form in which a Parquet column stores ids.
type idType int

const (
	signed   idType = iota // signed integers of 32 or 64 bits, including decimals
	unsigned               // unsigned integers of 32 or 64 bits
	digits                 // a string of digits
	decimal                // a decimal in bytes: big-endian two's complement
	plain                  // a string with an id that is not dense
	packed                 // the 16 bytes of a UUID
)

// The method "find" chooses the columns of the Parquet file that the parser must read.
func (f *Parquet) find(idColumn, segmentColumn string, table bool) error {
	id, err := leaf(f.opened, idColumn, "user_id", userColumn)
	if err != nil {
		return err
	}
	f.leaves = []*parquet.Column{id}
	if f.as, err = idTypeOf(id, f.kind); err != nil || !table {
		return err
	}
	other := func([]string) (int, error) { return -1, nil }
	names, err := leaf(f.opened, segmentColumn, "segment", other)
	if err != nil {
		return err
	}
	if names.Type().Kind() != parquet.ByteArray {
		return fmt.Errorf("column %q has type %s, but segment names must be strings", names.Name(), names.Type())
	}
	f.leaves = append(f.leaves, names)
	return nil
}

// The function "leaf" finds a column of a Parquet file by its name, by its number (from 1), or by the path of names of
// a nested column. If no column is requested, "leaf" returns the column with the usual name. Without a column with a
// usual name, the function "likely" chooses the column.
func leaf(file *parquet.File, asked, usual string, likely func([]string) (int, error)) (*parquet.Column, error) {
	at := file.Root().Columns()
	var names []string
	for _, c := range at {
		names = append(names, c.Name())
	}
	i, err := topLevel(names, asked, usual, likely)
	if err != nil {
		return nil, err
	}
	var found *parquet.Column
	if i >= 0 {
		found = at[i]
	} else if found, err = nested(file.Root(), names, asked); err != nil {
		return nil, err
	}
	if !found.Leaf() || found.MaxRepetitionLevel() > 0 {
		return nil, fmt.Errorf("column %q must hold a single value per row, not a list or a structure", found.Name())
	}
	return found, nil
}

// topLevel returns the index of the requested column in a list of names. If no column is requested, topLevel returns
// the index of the column with the usual name, or of the column that the function "likely" chooses. If the requested
// name is not in the list, topLevel returns -1.
func topLevel(names []string, asked, usual string, likely func([]string) (int, error)) (int, error) {
	if asked == "" {
		i, err := named(names, usual)
		if i < 0 && err == nil {
			i, err = likely(names)
		}
		if i < 0 && err == nil {
			err = fmt.Errorf("column %q does not exist: the file has the columns %q", usual, strings.Join(names, ","))
		}
		return i, err
	}
	if i, err := named(names, asked); i >= 0 || err != nil {
		return i, err
	}
	n, err := strconv.Atoi(asked)
	if err != nil {
		return -1, nil
	}
	if n < 1 || n > len(names) {
		return -1, fmt.Errorf("column %d does not exist: the file has %d columns", n, len(names))
	}
	return n - 1, nil
}

// The function "named" returns the index of a column name in a list, or -1. An exactly equal name takes precedence over
// a name that differs in upper and lower case. If the name occurs twice, the function "named" returns an error.
func named(names []string, name string) (int, error) {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		found := -1
		for i, n := range names {
			if !same(n, name) {
				continue
			}
			if found >= 0 {
				return -1, fmt.Errorf("column %q exists twice among the columns %q: select it by number", name,
					strings.Join(names, ","))
			}
			found = i
		}
		if found >= 0 {
			return found, nil
		}
	}
	return -1, nil
}

// The function "nested" finds a nested Parquet column by a path of names.
func nested(at *parquet.Column, names []string, path string) (*parquet.Column, error) {
	for step := range strings.SplitSeq(path, ".") {
		var inside []string
		for _, c := range at.Columns() {
			inside = append(inside, c.Name())
		}
		i, err := named(inside, step)
		if err != nil {
			return nil, err
		}
		if i < 0 {
			return nil, fmt.Errorf("column %q does not exist: the file has the columns %q", path,
				strings.Join(names, ","))
		}
		at = at.Columns()[i]
	}
	return at, nil
}

// idTypeOf returns the form in which a Parquet column stores ids, and rejects every type whose stored values are not
// whole numbers.
func idTypeOf(c *parquet.Column, kind ids.Kind) (idType, error) {
	if kind != ids.Dense {
		return otherTypeOf(c, kind)
	}
	switch kind := c.Type().Kind(); kind {
	case parquet.Int32, parquet.Int64:
		if as, ok := integerType(c.Type()); ok {
			return as, nil
		}
	case parquet.ByteArray, parquet.FixedLenByteArray:
		if as, ok := bytesType(c.Type()); ok {
			return as, nil
		}
	}
	return 0, fmt.Errorf(
		"column %q has type %s, but user ids must be 32-bit or 64-bit integers, decimals without a fraction, "+
			"or strings of digits", c.Name(), c.Type())
}

// otherTypeOf works like the function idTypeOf, for ids that are not dense.
func otherTypeOf(c *parquet.Column, kind ids.Kind) (idType, error) {
	var as idType
	ok := false
	wanted := "strings"
	switch stored := c.Type().Kind(); stored {
	case parquet.Int32, parquet.Int64:
		as, ok = integerType(c.Type())
		ok = ok && kind == ids.Uint64
	case parquet.ByteArray, parquet.FixedLenByteArray:
		as, ok = bytesType(c.Type())
		switch {
		case ok && as == digits:
			as = plain
		case ok && as == decimal:
			ok = kind == ids.Uint64
		case stored == parquet.FixedLenByteArray && kind == ids.UUID && c.Type().Length() == 16:
			as, ok = packed, isUUIDType(c.Type())
		}
	}
	if ok {
		return as, nil
	}
	switch kind {
	case ids.Uint64:
		wanted = "32-bit or 64-bit integers, decimals without a fraction, or strings of digits"
	case ids.UUID:
		wanted = "strings, or UUIDs of 16 bytes (FIXED_LEN_BYTE_ARRAY)"
	}
	return 0, fmt.Errorf("column %q has type %s, but ids of the kind %s must be %s", c.Name(), c.Type(), kind, wanted)
}

// isUUIDType reports whether a Parquet column of 16 bytes contains UUIDs: its declared type is UUID, or the column has
// no declared type.
func isUUIDType(t parquet.Type) bool {
	if logical := t.LogicalType(); logical != nil && logical.Value != nil {
		_, ok := logical.Value.(*format.UUIDType)
		return ok
	}
	return t.ConvertedType() == nil
}

func integerType(t parquet.Type) (idType, bool) {
	if logical := t.LogicalType(); logical != nil && logical.Value != nil {
		switch t := logical.Value.(type) {
		case *format.IntType:
			if t.IsSigned {
				return signed, true
			}
			return unsigned, true
		case *format.DecimalType:
			return signed, t.Scale == 0
		}
		return 0, false
	}
	converted := t.ConvertedType()
	if converted == nil {
		return signed, true
	}
	switch *converted {
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		return unsigned, true
	case deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64:
		return signed, true
	}
	return 0, false
}

// bytesType returns the form of the ids in a Parquet column of bytes. bytesType treats bytes without a declared type as
// strings, because old programs write strings in this way.
func bytesType(t parquet.Type) (idType, bool) {
	if logical := t.LogicalType(); logical != nil && logical.Value != nil {
		switch d := logical.Value.(type) {
		case *format.DecimalType:
			return decimal, d.Scale == 0
		case *format.StringType:
			return digits, true
		}
		return 0, false
	}
	converted := t.ConvertedType()
	return digits, t.Kind() == parquet.ByteArray && (converted == nil || *converted == deprecated.UTF8)
}
