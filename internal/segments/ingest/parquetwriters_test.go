package ingest

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// TestReadsWhatOtherProgramsWrite reads the same 3,000 users as written by DuckDB and Polars.
// DuckDB and Polars wrote the files in testdata/parquet. Each file has 3,000 user ids in the column user_id:
// (i*2003+17)*1000003 % 2^32 for i from 0 to 2999. About half are above 2^31, in no order, so differences need 33 bits.
// The ids in duckdb-dec9-* (9 digits) are (i*2003+17) % 999999999.
//   - duckdb-TYPE-VERSION-CODEC.parquet: DuckDB (npm package @duckdb/node-api), with a second column "segment", by
//     copy (select EXPRESSION::TYPE as user_id, 'x'||(i%3) as segment from range(3000) r(i)) to 'FILE'
//     (format parquet, parquet_version V2, compression lz4_raw). TYPE is uint32 UINTEGER, int64 BIGINT, uint64 UBIGINT,
//     string VARCHAR, dec9 DECIMAL(9,0), dec18 DECIMAL(18,0), dec38 DECIMAL(38,0) or huge HUGEINT. DuckDB writes
//     HUGEINT as DOUBLE, which segmentbuild must reject.
//   - polars-TYPE-CODEC.parquet: Polars (npm package nodejs-polars), by df.writeParquet(file, {compression: "lz4"}).
func TestReadsWhatOtherProgramsWrite(t *testing.T) {
	t.Parallel()
	var want, small []uint32
	for i := range uint64(3000) {
		n := (i*2003 + 17) * 1000003 % (1 << 32)
		want, small = append(want, uint32(n)), append(small, uint32(i*2003+17)%999999999)
	}
	slices.Sort(want)
	slices.Sort(small)
	require.Greater(t, want[2999], uint32(1<<31))
	files, err := filepath.Glob("testdata/parquet/*.parquet")
	require.NoError(t, err)
	require.Len(t, files, 18)
	for _, path := range files {
		got, err := read(t, Input{Path: path})
		switch {
		case strings.Contains(path, "huge"): // HUGEINT is written as DOUBLE
			require.ErrorContains(t, err, "has type DOUBLE")
		case strings.Contains(path, "dec9"):
			require.NoError(t, err, path)
			require.Equal(t, small, got, path)
		default:
			require.NoError(t, err, path)
			require.Equal(t, want, got, path)
		}
	}
}

// TestParquetDecimalsOfEveryWidth tests DECIMAL(p,0) in 4, 8, 5, 16 and any number of bytes, nullable
// and not nullable.
func TestParquetDecimalsOfEveryWidth(t *testing.T) {
	t.Parallel()
	word := func(size int, v int64) []byte {
		b := make([]byte, size)
		for i := range b {
			if b[size-1-i] = byte(v >> (8 * min(i, 7))); i > 7 {
				b[size-1-i] = byte(v >> 63)
			}
		}
		return b
	}
	for name, node := range map[string]parquet.Node{
		"int32": parquet.Decimal(0, 9, parquet.Int32Type), "int64": parquet.Decimal(0, 18, parquet.Int64Type),
		"fixed 5": parquet.Decimal(0, 11, parquet.FixedLenByteArrayType(5)), "fixed 16": parquet.Decimal(0, 38,
			parquet.FixedLenByteArrayType(16)),
		"bytes":      parquet.Decimal(0, 38, parquet.ByteArrayType),
		"nullable":   parquet.Optional(parquet.Decimal(0, 38, parquet.FixedLenByteArrayType(16))),
		"dictionary": parquet.Encoded(parquet.Decimal(0, 38, parquet.ByteArrayType), &parquet.RLEDictionary),
	} {
		var b bytes.Buffer
		w := parquet.NewWriter(&b, parquet.NewSchema("x", parquet.Group{"user_id": node}))
		ids := []int64{0, 7, 128, 1 << 30, 1<<31 - 1}
		if name != "int32" {
			ids = append(ids, 1<<31, 1<<32-1, 1<<32, -1, -129)
		}
		level := 0
		if name == "nullable" {
			level = 1
		}
		for i, id := range ids {
			v := parquet.FixedLenByteArrayValue(word(16, id))
			switch name {
			case "int32":
				v = parquet.Int32Value(int32(id))
			case "int64":
				v = parquet.Int64Value(id)
			case "fixed 5":
				v = parquet.FixedLenByteArrayValue(word(5, id))
			case "bytes", "dictionary":
				v = parquet.ByteArrayValue(word(5+i, id))
			}
			_, err := w.WriteRows([]parquet.Row{{v.Level(0, level, 0)}})
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		r := NewReader(Config{MaxBadRows: Tolerance{Rows: 100}})
		set, err := r.ReadIDs(t.Context(), []Input{{Path: write(t, "a.parquet", b.Bytes())}})
		require.NoError(t, err, name)
		if name == "int32" {
			require.Equal(t, []uint32{0, 7, 128, 1 << 30, 1<<31 - 1}, idsOf(set), name)
			continue
		}
		require.Equal(t, []uint32{0, 7, 128, 1 << 30, 1<<31 - 1, 1 << 31, 1<<32 - 1}, idsOf(set), name)
		var values []string
		_, bad := r.BadRows()
		for _, row := range bad {
			values = append(values, row.Value)
		}
		require.Equal(t, []string{"4294967296", "-1", "-129"}, values, name)
	}
}

func TestParquetStringsAreDigitsAndNothingElse(t *testing.T) {
	t.Parallel()
	type row struct {
		UserID *string `parquet:"user_id,optional,dict"`
	}
	var rows []row
	for _, s := range []string{"1", "4294967295", "007", "", "x", "-1", "4294967296", "1.0"} {
		rows = append(rows, row{&s})
	}
	rows = append(rows, row{nil})
	r := NewReader(Config{MaxBadRows: Tolerance{Rows: 100}})
	set, err := r.ReadIDs(t.Context(), []Input{{Path: parquetFile(t, rows)}})
	require.NoError(t, err)
	require.Equal(t, []uint32{1, 7, 4294967295}, idsOf(set))
	var values []string
	_, bad := r.BadRows()
	for _, row := range bad {
		values = append(values, row.Value)
	}
	require.Equal(t, []string{"", "x", "-1", "4294967296", "1.0", "null"}, values)
}

func TestParquetColumnsAreFoundAsInCSV(t *testing.T) {
	t.Parallel()
	file := func(names ...string) string {
		node := parquet.Group{}
		for _, name := range names {
			node[name] = parquet.Int(64)
		}
		var b bytes.Buffer
		schema := parquet.NewSchema("x", node)
		w := parquet.NewWriter(&b, schema)
		var row parquet.Row
		for i, column := range schema.Columns() {
			row = append(row, parquet.Int64Value(int64(slices.Index(names, column[0])+1)).Level(0, 0, i))
		}
		_, err := w.WriteRows([]parquet.Row{row})
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return write(t, "a.parquet", b.Bytes())
	}
	for _, c := range []struct {
		names []string
		asked string
		want  uint32
		fault string
	}{
		{names: []string{"a", "user_id", "uid"}, want: 2},
		{names: []string{"a", "USER_ID"}, want: 2},
		{names: []string{"a", "customerId"}, want: 2},
		{names: []string{"a", "uid"}, want: 2},
		{names: []string{"a", "Member"}, asked: "member", want: 2},
		{names: []string{"Member", "member"}, asked: "member", want: 2},
		{names: []string{"client_id", "member_id"}, fault: `columns "client_id" and "member_id" could both hold user ids`},
		{names: []string{"order_id", "member_id"}, want: 2},
		{names: []string{"campaign_id", "subscriber"}, want: 2},
		{names: []string{"amount", "order_id"},
			fault: `other id columns exist ("order_id"): select one with --id-column`},
		{names: []string{"amount", "order_id"}, asked: "order_id", want: 2},
		{names: []string{"Member", "MEMBER"}, asked: "member", fault: `column "member" exists twice`},
		{names: []string{"User_ID", "USER_ID"}, fault: `column "user_id" exists twice`},
		{names: []string{"a", "b"}, fault: `column "user_id" does not exist: the file has the columns "a,b"`},
		{names: []string{"a", "b"}, asked: "3", fault: `column 3 does not exist: the file has 2`},
	} {
		got, err := read(t, Input{Path: file(c.names...), IDColumn: c.asked})
		if c.fault != "" {
			require.ErrorContains(t, err, c.fault)
			continue
		}
		require.NoError(t, err, c.names)
		require.Equal(t, []uint32{c.want}, got, c.names)
	}
}

// TestDamagedParquetLosesNoRows damages files of every encoding at random and checks that each is an
// error or yields as many rows as before, including bad rows.
func TestDamagedParquetLosesNoRows(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/parquet/*.parquet")
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(7, 7))
	dir := t.TempDir()
	for n := range 200 {
		raw, err := os.ReadFile(files[n%len(files)])
		require.NoError(t, err)
		from, to := 0, len(raw)
		if n%3 > 0 { // the footer is small, and tells most
			from = to - to/10
		}
		for range 1 + n%4 {
			raw[from+random.IntN(to-from)] ^= byte(1 + random.IntN(255))
		}
		path := filepath.Join(dir, "a.parquet")
		require.NoError(t, os.WriteFile(path, raw, 0o644))
		r := NewReader(Config{Workers: 1, MaxBadRows: Tolerance{Rows: 1 << 40}})
		if _, err := r.ReadIDs(t.Context(), []Input{{Path: path}}); err != nil {
			continue
		}
		report := r.Reports()[0]
		require.EqualValues(t, 3000, report.Rows+report.Bad, "%s, damaged in run %d", files[n%len(files)], n)
	}
}

// TestParquetOfLZ4RawAndDeltasAtSize tests large pages of ids that hardly compress, in row groups of
// more than a block, with nulls and as a table.
func TestParquetOfLZ4RawAndDeltasAtSize(t *testing.T) {
	t.Parallel()
	type deltas struct {
		Other   string `parquet:"other"`
		UserID  uint32 `parquet:"user_id,delta"`
		Segment string `parquet:"segment,dict"`
	}
	type nullable struct {
		UserID *int64 `parquet:"user_id,optional"`
	}
	random := rand.New(rand.NewPCG(3, 4))
	var packed []deltas
	var plain []nullable
	want := map[string][]uint32{}
	for i := range 70_000 {
		id, segment := random.Uint32(), []string{"new", "old"}[random.IntN(2)]
		packed = append(packed, deltas{"x", id, segment})
		want[segment] = append(want[segment], id)
		plain = append(plain, nullable{})
		if i%1000 != 7 {
			wide := int64(id)
			plain[i].UserID = &wide
			want["plain"] = append(want["plain"], id)
		}
	}
	for name, ids := range want {
		slices.Sort(ids)
		want[name] = slices.Compact(ids)
	}
	for _, version := range []int{1, 2} {
		options := []parquet.WriterOption{parquet.Compression(&parquet.Lz4Raw), parquet.DataPageVersion(version)}
		sets, err := NewReader(Config{}).ReadTable(t.Context(), []Input{{Path: largeParquet(t, packed, options)}}, nil)
		require.NoError(t, err)
		for _, name := range []string{"new", "old"} {
			require.True(t, slices.Equal(want[name], idsOf(sets[name])), "version %d, %s", version, name)
		}
		r := NewReader(Config{})
		set, err := r.ReadIDs(t.Context(), []Input{{Path: largeParquet(t, plain, options)}})
		require.NoError(t, err)
		bad, _ := r.BadRows()
		require.EqualValues(t, 70, bad)
		require.True(t, slices.Equal(want["plain"], idsOf(set)), "version %d", version)
	}
}

func largeParquet[T any](t *testing.T, rows []T, options []parquet.WriterOption) string {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, append(options, parquet.PageBufferSize(1<<20),
		parquet.MaxRowsPerRowGroup(66_000))...)
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return write(t, "a.parquet", b.Bytes())
}
